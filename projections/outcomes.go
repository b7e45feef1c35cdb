package projections

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"holdfast/aggregate"
	"holdfast/events"
)

var outcomesTable = &table{
	name: "outcomes", keys: 2,
	columns: []column{
		{"tenant", text}, {"key", text}, {"withdrawal", text}, {"result", text}, {"reference", text},
		{"media_type", text}, {"body", blob}, {"resolved_at", text}, {"resolved_by", text},
		{"fee", text}, {"rail_time", text},
	},
}

// outcomes is the key's index: which withdrawal a key holds, and with what outcome.
func outcomes() *Projection {
	return &Projection{
		Name: "outcomes", Version: 2, // 2: the rail's fee and its time
		tables: []*table{outcomesTable},
		project: func(s *Step, rows *changes) {
			switch e := s.Event.(type) {
			case events.KeyClaimed:
				rows.put(outcomesTable, string(s.Tenant), string(e.Key), string(s.Withdrawal), "", "", "", []byte{}, "", "", "", "")
			case events.Released:
				rows.drop(outcomesTable, string(s.Tenant), string(e.Key))
			case events.OutcomeResolved:
				if _, confirmed := s.Before.Outcome(); confirmed {
					return // a person's word that closes a dispute
				}
				o, _ := s.After.Outcome()
				rows.put(outcomesTable, string(s.Tenant), string(o.Key), string(s.Withdrawal), string(o.Result), o.Reference,
					o.Response.MediaType, o.Response.Body, instant(o.ResolvedAt), o.Actor, o.Fee.String(), instant(o.RailTime.Time()))
			}
		},
	}
}

// Final returns the withdrawal for which a key has an outcome, as far as the projection
// knows; false when it knows of none. What it knows does not change any more, but it may
// be of another log: the withdrawal's stream has to say the same. It never waits for the
// projection to catch up, and returns false where there is none.
func (s *Set) Final(ctx context.Context, tenant events.Tenant, key events.RequestKey) (id events.WithdrawalID, found bool, err error) {
	p := outcomes()
	at, live, err := s.dir.live(p)
	if err != nil || !live {
		return "", false, err
	}
	f, err := s.file(p, at)
	if err != nil {
		return "", false, err
	}
	err = f.read(ctx, func(conn *sqlite.Conn, _ mark) error {
		stmt := conn.Prep("SELECT withdrawal FROM outcomes WHERE tenant = ? AND key = ? AND result <> ''")
		defer stmt.Reset()
		bind(stmt, row{string(tenant), string(key)})
		if found, err = stmt.Step(); found {
			id = events.WithdrawalID(stmt.ColumnText(0))
		}
		return err
	})
	return id, found, err
}

// Outcome is what a key holds.
type Outcome struct {
	Withdrawal events.WithdrawalID
	// Result is empty while there is no outcome.
	Result    events.Result
	Reference string
	Response  events.Response
	// ResolvedAt is a timestamp as in the log; ResolvedBy is who recorded the outcome.
	ResolvedAt, ResolvedBy string
	// Fee and RailTime are the rail's, where it said them: a decimal, and a timestamp.
	Fee, RailTime string
}

// Outcome returns what a key holds: not-found when it holds nothing. Errors as for
// [Set.InFlight].
func (s *Set) Outcome(ctx context.Context, tenant events.Tenant, key events.RequestKey, o ...ReadOption) (out Outcome, err error) {
	err = s.query(ctx, outcomes(), o, func(conn *sqlite.Conn) error {
		stmt := conn.Prep("SELECT withdrawal, result, reference, media_type, body, resolved_at, resolved_by, fee, rail_time FROM outcomes WHERE tenant = ? AND key = ?")
		defer stmt.Reset()
		bind(stmt, row{string(tenant), string(key)})
		switch found, err := stmt.Step(); {
		case err != nil:
			return err
		case !found:
			return &aggregate.Refusal{Code: aggregate.CodeNotFound, Key: key, Message: fmt.Sprintf("key %s holds nothing", events.Quote(string(key)))}
		}
		out = Outcome{
			Withdrawal: events.WithdrawalID(stmt.ColumnText(0)), Result: events.Result(stmt.ColumnText(1)), Reference: stmt.ColumnText(2),
			Response:   events.Response{MediaType: stmt.ColumnText(3), Body: columnBytes(stmt, 4)},
			ResolvedAt: stmt.ColumnText(5), ResolvedBy: stmt.ColumnText(6), Fee: stmt.ColumnText(7), RailTime: stmt.ColumnText(8),
		}
		return nil
	})
	return out, err
}
