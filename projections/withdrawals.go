package projections

import (
	"context"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"holdfast/aggregate"
	"holdfast/events"
)

var withdrawalsTable = &table{
	name: "withdrawals", keys: 1,
	columns: []column{
		{"withdrawal", text}, {"tenant", text}, {"requested_at", text}, {"account", text}, {"reference", text},
		{"amount", text}, {"sortable", text}, {"currency", text}, {"destination", text},
		{"state", text}, {"since", text}, {"deadline", text}, {"key", text}, {"disputed", number}, {"events", number},
	},
	indexes: []string{"tenant, requested_at, withdrawal", "tenant, account, requested_at, withdrawal"},
}

// withdrawals is the list of all withdrawals.
func withdrawals() *Projection {
	return &Projection{
		Name: "withdrawals", Version: 1, tables: []*table{withdrawalsTable},
		project: func(s *Step, rows *changes) {
			r, requestedAt, _ := s.After.Requested()
			claim, _ := s.After.Claim()
			_, disputed := s.After.Dispute()
			// Before every deadline: what is sending is unknown later, when it is read.
			state, since := s.After.State(time.Time{})
			deadline := ""
			if state == aggregate.StateSending {
				deadline = instant(claim.Attempt.Deadline)
			}
			rows.put(withdrawalsTable, string(s.Withdrawal), string(s.Tenant), instant(requestedAt), r.Account, r.Reference,
				r.Amount.String(), sortable(r.Amount.String()), r.Currency, r.Destination,
				string(state), instant(since), deadline, string(claim.Key), bit(disputed), int64(s.After.Next()))
		},
	}
}

// sortable is a positive amount in a form that sorts as the amounts do.
func sortable(amount string) string {
	whole, fraction, _ := strings.Cut(amount, ".")
	return fmt.Sprintf("%038s.%s", whole, fraction)
}

// Withdrawal is one line of the list.
type Withdrawal struct {
	ID                                                events.WithdrawalID
	Account, Reference, Amount, Currency, Destination string
	RequestedAt                                       time.Time
	// State is how far it has got by now, and Since since when.
	State aggregate.State
	Since time.Time
	// Key is the holder; empty when nobody holds it.
	Key      events.RequestKey
	Disputed bool
	Events   uint64
}

// MaxPage is the most withdrawals that one page has.
const MaxPage = 500

// Filter says which withdrawals are wanted; the zero value is all of them.
type Filter struct {
	Account string
	State   aggregate.State
	// From and To bound when it was requested, To excluded; zero times do not.
	From, To time.Time
	// MinAmount and MaxAmount bound the amount, both included; zero amounts do not.
	MinAmount, MaxAmount events.Amount
	// Cursor is where the page before ended; empty for the first page.
	Cursor string
	// Limit is how many are wanted: 1 to MaxPage; 0 stands for 50.
	Limit int
}

// Page is some of the withdrawals, the newest first.
type Page struct {
	Withdrawals []Withdrawal
	// Next is the cursor of the page that follows; empty when this is the last one.
	Next string
}

// Withdrawals returns a page of a tenant's withdrawals. What is requested while somebody
// turns the pages neither repeats a line nor hides one. Errors as for [Set.InFlight], and
// invalid-request for a cursor or a limit that is none.
func (s *Set) Withdrawals(ctx context.Context, tenant events.Tenant, f Filter, o ...ReadOption) (page Page, err error) {
	where, values, err := f.where(tenant, s.clock())
	if err != nil {
		return page, aggregate.Invalid(err)
	}
	limit := f.Limit
	if limit == 0 {
		limit = 50
	}
	err = s.query(ctx, withdrawals(), o, func(conn *sqlite.Conn) error {
		sql := `SELECT withdrawal, account, reference, amount, currency, destination, requested_at, state, since, deadline, key, disputed, events
			FROM withdrawals WHERE ` + where + " ORDER BY requested_at DESC, withdrawal DESC LIMIT ?"
		return each(conn, sql, append(values, int64(limit)+1), func(r *sqlite.Stmt) {
			page.Withdrawals = append(page.Withdrawals, s.line(r))
		})
	})
	if len(page.Withdrawals) > limit {
		page.Withdrawals = page.Withdrawals[:limit]
		last := page.Withdrawals[limit-1]
		page.Next = instant(last.RequestedAt) + "_" + string(last.ID)
	}
	return page, err
}

func (s *Set) line(r *sqlite.Stmt) Withdrawal {
	w := Withdrawal{
		ID: events.WithdrawalID(r.ColumnText(0)), Account: r.ColumnText(1), Reference: r.ColumnText(2), Amount: r.ColumnText(3),
		Currency: r.ColumnText(4), Destination: r.ColumnText(5), RequestedAt: moment(r.ColumnText(6)),
		State: aggregate.State(r.ColumnText(7)), Since: moment(r.ColumnText(8)),
		Key: events.RequestKey(r.ColumnText(10)), Disputed: r.ColumnInt64(11) == 1, Events: uint64(r.ColumnInt64(12)),
	}
	if deadline := moment(r.ColumnText(9)); w.State == aggregate.StateSending && !s.clock().Before(deadline) {
		w.State, w.Since = aggregate.StateUnknown, deadline
	}
	return w
}

// where is the filter as SQL.
func (f *Filter) where(tenant events.Tenant, now time.Time) (string, row, error) {
	if f.Limit < 0 || f.Limit > MaxPage {
		return "", nil, fmt.Errorf("limit %d must be from 1 to %d", f.Limit, MaxPage)
	}
	conditions, values := []string{"tenant = ?"}, row{string(tenant)}
	add := func(condition string, v ...any) {
		conditions, values = append(conditions, condition), append(values, v...)
	}
	if f.Account != "" {
		add("account = ?", f.Account)
	}
	switch f.State {
	case "":
	case aggregate.StateSending:
		add("state = ? AND deadline > ?", string(f.State), instant(now))
	case aggregate.StateUnknown:
		add("(state = ? OR state = ? AND deadline <= ?)", string(f.State), string(aggregate.StateSending), instant(now))
	default:
		add("state = ?", string(f.State))
	}
	if !f.From.IsZero() {
		add("requested_at >= ?", instant(f.From))
	}
	if !f.To.IsZero() {
		add("requested_at < ?", instant(f.To))
	}
	if f.MinAmount != (events.Amount{}) {
		add("sortable >= ?", sortable(f.MinAmount.String()))
	}
	if f.MaxAmount != (events.Amount{}) {
		add("sortable <= ?", sortable(f.MaxAmount.String()))
	}
	if f.Cursor != "" {
		at, id, ok := strings.Cut(f.Cursor, "_")
		if !ok || moment(at).IsZero() || events.WithdrawalID(id).Validate() != nil {
			return "", nil, fmt.Errorf("cursor %s is none that a page of this list ended with", events.Quote(f.Cursor))
		}
		add("(requested_at, withdrawal) < (?, ?)", at, id)
	}
	return strings.Join(conditions, " AND "), values, nil
}
