package projections

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"holdfast/aggregate"
	"holdfast/events"
)

var totalsTable = &table{
	name: "totals", keys: 3, sums: true,
	columns: []column{
		{"tenant", text}, {"day", text}, {"currency", text},
		{"requested", number}, {"requested_amount", decimal},
		{"sent", number}, {"sent_amount", decimal},
		{"refused", number}, {"refused_amount", decimal},
		{"in_flight", number}, {"in_flight_amount", decimal},
	},
}

// totals counts and sums up each day's withdrawals.
func totals() *Projection {
	return &Projection{
		Name: "totals", Version: 1, tables: []*table{totalsTable},
		project: func(s *Step, rows *changes) {
			count(rows, s, s.Before, -1, "-")
			count(rows, s, s.After, 1, "")
		},
	}
}

// count adds what a withdrawal counts for, or takes it away.
func count(rows *changes, s *Step, w aggregate.Withdrawal, one int64, sign string) {
	r, requestedAt, ok := w.Requested()
	if !ok {
		return
	}
	amount := sign + r.Amount.String()
	add := func(day time.Time, column int) {
		values := []any{string(s.Tenant), day.UTC().Format(time.DateOnly), r.Currency, int64(0), "0", int64(0), "0", int64(0), "0", int64(0), "0"}
		values[column], values[column+1] = one, amount
		rows.put(totalsTable, values...)
	}
	add(requestedAt, 3)
	claim, claimed := w.Claim()
	if o, resolved := w.Outcome(); resolved {
		if o.Result == events.ResultSent {
			add(o.ResolvedAt, 5)
		}
	} else if claimed {
		add(claim.Since, 9)
	}
	if claimed && claim.Attempt != nil && claim.Attempt.Reported == events.ResultRefused {
		add(claim.Attempt.Ended, 7)
	}
}

// Total is what one day had in one currency. Amounts are exact decimals.
type Total struct {
	// Day is a date in UTC, as in 2026-01-31.
	Day, Currency string
	// Requested and Sent count on the day on which that was recorded. Refused is what the
	// rail refused that day and nobody has released since; InFlight what was claimed that
	// day and still waits for an outcome.
	Requested, Sent, Refused, InFlight                         int64
	RequestedAmount, SentAmount, RefusedAmount, InFlightAmount string
}

// Totals returns a tenant's totals for the days from one to another, both included, as in
// 2026-01-31, the newest first. Errors as for [Set.InFlight].
func (s *Set) Totals(ctx context.Context, tenant events.Tenant, from, to string, o ...ReadOption) (list []Total, err error) {
	err = s.query(ctx, totals(), o, func(conn *sqlite.Conn) error {
		const sql = `SELECT day, currency, requested, requested_amount, sent, sent_amount, refused, refused_amount, in_flight, in_flight_amount
			FROM totals WHERE tenant = ? AND day BETWEEN ? AND ? ORDER BY day DESC, currency`
		return each(conn, sql, row{string(tenant), from, to}, func(r *sqlite.Stmt) {
			list = append(list, Total{
				Day: r.ColumnText(0), Currency: r.ColumnText(1),
				Requested: r.ColumnInt64(2), RequestedAmount: r.ColumnText(3), Sent: r.ColumnInt64(4), SentAmount: r.ColumnText(5),
				Refused: r.ColumnInt64(6), RefusedAmount: r.ColumnText(7), InFlight: r.ColumnInt64(8), InFlightAmount: r.ColumnText(9),
			})
		})
	})
	return list, err
}
