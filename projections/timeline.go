package projections

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
	"holdfast/events"
)

var timelineTable = &table{
	name: "timeline", keys: 1,
	columns: []column{
		{"position", number}, {"tenant", text}, {"account", text}, {"withdrawal", text}, {"revision", number},
		{"type", text}, {"at", text}, {"actor", text},
	},
	indexes: []string{"tenant, account, position"},
}

// timeline is what happened, in the order of the log: of a tenant or of one account.
func timeline() *Projection {
	return &Projection{
		Name: "timeline", Version: 1, tables: []*table{timelineTable},
		project: func(s *Step, rows *changes) {
			r, _, _ := s.After.Requested()
			rows.put(timelineTable, int64(s.Position), string(s.Tenant), r.Account, string(s.Withdrawal), int64(s.Revision),
				s.Event.Type(), s.Metadata.RecordedAt.String(), s.Metadata.Actor)
		},
	}
}

// Happened is one event on the timeline. The event itself is in the withdrawal's stream.
type Happened struct {
	Position   eventlog.Position
	Account    string
	Withdrawal events.WithdrawalID
	Revision   uint64
	Type       string
	At         time.Time
	Actor      string
}

// Timeline returns at most limit events of a tenant after a position, the oldest first; of
// one account, where that is not empty. Errors as for [Set.InFlight].
func (s *Set) Timeline(ctx context.Context, tenant events.Tenant, account string, after eventlog.Position, limit int, o ...ReadOption) (list []Happened, err error) {
	err = s.query(ctx, timeline(), o, func(conn *sqlite.Conn) error {
		sql, values := "SELECT position, account, withdrawal, revision, type, at, actor FROM timeline WHERE tenant = ?", row{string(tenant)}
		if account != "" {
			sql, values = sql+" AND account = ?", append(values, account)
		}
		sql, values = sql+" AND position > ? ORDER BY position LIMIT ?", append(values, int64(after), int64(limit))
		return each(conn, sql, values, func(r *sqlite.Stmt) {
			list = append(list, Happened{
				Position: eventlog.Position(r.ColumnInt64(0)), Account: r.ColumnText(1), Withdrawal: events.WithdrawalID(r.ColumnText(2)),
				Revision: uint64(r.ColumnInt64(3)), Type: r.ColumnText(4), At: moment(r.ColumnText(5)), Actor: r.ColumnText(6),
			})
		})
	})
	return list, err
}
