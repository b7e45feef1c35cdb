package projections

import (
	"context"

	"zombiezen.com/go/sqlite"

	"holdfast/events"
)

var claimsTable = &table{
	name: "claims", keys: 2,
	columns: []column{
		{"withdrawal", text}, {"revision", number}, {"tenant", text}, {"key", text}, {"since", text},
		{"released_at", text}, {"released_by", text}, {"reason", text}, {"evidence", text},
	},
}

// claims is the withdrawal's index: which key holds it, and which ones held it before.
func claims() *Projection {
	return &Projection{
		Name: "claims", Version: 1, tables: []*table{claimsTable},
		project: func(s *Step, rows *changes) {
			switch e := s.Event.(type) {
			case events.KeyClaimed:
				rows.put(claimsTable, string(s.Withdrawal), int64(s.Revision), string(s.Tenant), string(e.Key), s.Metadata.RecordedAt.String(), "", "", "", "")
			case events.Released:
				past := s.After.PastClaims()
				c := past[len(past)-1]
				rows.put(claimsTable, string(s.Withdrawal), int64(c.Revision), string(s.Tenant), string(c.Key), instant(c.Since),
					instant(c.ReleasedAt), c.ReleasedBy, c.Reason, c.Evidence)
			}
		},
	}
}

// Holder is a key that holds or held a withdrawal.
type Holder struct {
	Key events.RequestKey
	// Revision is where in the withdrawal's stream the claim was taken, Since when.
	Revision uint64
	Since    string
	// ReleasedAt, ReleasedBy, Reason and Evidence are empty for the holder of today.
	ReleasedAt, ReleasedBy, Reason, Evidence string
}

// Holders returns the keys that hold and held a withdrawal, the newest claim first. It
// has none for a withdrawal that nobody claimed, and for another tenant's. Errors as for
// [Set.InFlight].
func (s *Set) Holders(ctx context.Context, tenant events.Tenant, id events.WithdrawalID, o ...ReadOption) (list []Holder, err error) {
	err = s.query(ctx, claims(), o, func(conn *sqlite.Conn) error {
		const sql = "SELECT key, revision, since, released_at, released_by, reason, evidence FROM claims WHERE withdrawal = ? AND tenant = ? ORDER BY revision DESC"
		return each(conn, sql, row{string(id), string(tenant)}, func(r *sqlite.Stmt) {
			list = append(list, Holder{
				Key: events.RequestKey(r.ColumnText(0)), Revision: uint64(r.ColumnInt64(1)), Since: r.ColumnText(2),
				ReleasedAt: r.ColumnText(3), ReleasedBy: r.ColumnText(4), Reason: r.ColumnText(5), Evidence: r.ColumnText(6),
			})
		})
	})
	return list, err
}
