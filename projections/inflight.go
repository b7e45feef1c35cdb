package projections

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"holdfast/aggregate"
	"holdfast/events"
)

var inFlightTable = &table{
	name: "inflight", keys: 1,
	columns: []column{
		{"withdrawal", text}, {"tenant", text}, {"disputed", number}, {"since", text}, {"account", text}, {"amount", text},
		{"currency", text}, {"key", text}, {"claimed_at", text}, {"attempt", number}, {"started", text}, {"deadline", text},
		{"reported", text}, {"ended", text}, {"last_error", text}, {"events", number},
	},
	indexes: []string{"tenant, disputed DESC, since, withdrawal"},
}

// inFlight is what waits for somebody: claimed without an outcome, or disputed.
func inFlight() *Projection {
	return &Projection{
		Name: "inflight", Version: 1, tables: []*table{inFlightTable},
		project: func(s *Step, rows *changes) {
			claim, claimed := s.After.Claim()
			_, resolved := s.After.Outcome()
			dispute, disputed := s.After.Dispute()
			if !disputed && (!claimed || resolved) {
				rows.drop(inFlightTable, string(s.Withdrawal))
				return
			}
			r, _, _ := s.After.Requested()
			since, lastError, a := claim.Since, "", aggregate.Attempt{}
			if claim.Attempt != nil {
				a = *claim.Attempt
				lastError = a.Detail
			}
			if disputed {
				since, lastError = dispute.Since, dispute.Detail
			}
			rows.put(inFlightTable, string(s.Withdrawal), string(s.Tenant), bit(disputed), instant(since), r.Account, r.Amount.String(),
				r.Currency, string(claim.Key), instant(claim.Since), int64(a.Number), instant(a.Started), instant(a.Deadline),
				string(a.Reported), instant(a.Ended), lastError, int64(s.After.Next()))
		},
	}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Waiting is a withdrawal that waits for somebody.
type Waiting struct {
	Withdrawal events.WithdrawalID
	Account    string
	Amount     string
	Currency   string
	// Key is the holder; empty when a dispute is all there is.
	Key events.RequestKey
	// Disputed says that the rail contradicts the record.
	Disputed bool
	// State is the sub-state now: claimed, sending, unknown or refused; or requested, sent
	// or failed under a dispute is not told apart here and empty.
	State aggregate.State
	// Since is when the claim was taken or the dispute began, Age how long ago that was.
	Since time.Time
	Age   time.Duration
	// LastError is what the rail said last, if it said anything.
	LastError string
	// Events is how many events the withdrawal's stream has.
	Events uint64
}

// InFlight returns what waits for somebody: the disputed first, then the oldest. Errors:
// [*Poison], [ErrOtherLog], [ErrBehind], those of the log and of the files, and the
// context's.
func (s *Set) InFlight(ctx context.Context, tenant events.Tenant, o ...ReadOption) (list []Waiting, err error) {
	now := s.clock()
	err = s.query(ctx, inFlight(), o, func(conn *sqlite.Conn) error {
		const sql = `SELECT withdrawal, account, amount, currency, key, disputed, since, attempt, started, deadline, reported, ended, last_error, events, claimed_at
			FROM inflight WHERE tenant = ? ORDER BY disputed DESC, since, withdrawal`
		return each(conn, sql, row{string(tenant)}, func(r *sqlite.Stmt) {
			w := Waiting{
				Withdrawal: events.WithdrawalID(r.ColumnText(0)), Account: r.ColumnText(1), Amount: r.ColumnText(2), Currency: r.ColumnText(3),
				Key: events.RequestKey(r.ColumnText(4)), Disputed: r.ColumnInt64(5) == 1, Since: moment(r.ColumnText(6)),
				LastError: r.ColumnText(12), Events: uint64(r.ColumnInt64(13)),
			}
			w.Age = now.Sub(w.Since)
			if w.Key != "" {
				claim := aggregate.Claim{Key: w.Key, Since: moment(r.ColumnText(14))}
				if n := r.ColumnInt64(7); n > 0 {
					claim.Attempt = &aggregate.Attempt{
						Number: int(n), Started: moment(r.ColumnText(8)), Deadline: moment(r.ColumnText(9)),
						Reported: events.Result(r.ColumnText(10)), Ended: moment(r.ColumnText(11)),
					}
				}
				w.State, _ = claim.State(now)
			}
			list = append(list, w)
		})
	})
	return list, err
}
