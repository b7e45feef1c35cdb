package submissions

import (
	"cmp"
	"context"
	"slices"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// InFlight returns the tenant's withdrawals that wait for somebody: those claimed
// without an outcome, and those disputed, which come first; then the oldest claims. It
// reads the whole log; its memory grows with what is in flight, not with the log.
//
// Refusals: damaged, with the first stream that is; the list then has all the others
// all the same. Unavailable, without a list.
func (l *Ledger) InFlight(ctx context.Context) ([]Status, error) {
	if err := l.tenant.Validate(); err != nil {
		return nil, aggregate.Invalid(err)
	}
	open := candidates{}
	for recorded, err := range l.log.ReadAll(ctx, eventlog.Start) {
		if err != nil {
			return nil, refusalOf(err)
		}
		if id, ok := events.WithdrawalOfStream(recorded.Stream); ok {
			open.mark(id, recorded.Type)
		}
	}
	var list []Status
	var damaged error
	for id := range open {
		w, err := l.streams.withdrawal(ctx, id)
		if code, _ := CodeOf(err); err != nil && code != aggregate.CodeDamaged {
			return nil, err
		}
		if err != nil {
			damaged = cmp.Or(damaged, err)
			continue
		}
		if s := l.status(w.state); s.Tenant == l.tenant && (s.State.InFlight() || s.Dispute != nil) {
			list = append(list, s)
		}
	}
	if err := l.act(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.urgency(), b.urgency()), a.WaitingSince().Compare(b.WaitingSince()), cmp.Compare(a.ID, b.ID))
	})
	return list, damaged
}

// urgency orders what waits for somebody: disputes come first (B7).
func (s Status) urgency() int {
	if s.Dispute != nil {
		return 0
	}
	return 1
}

// candidates are the withdrawals that may be in flight or disputed, as far as the types
// of their events tell, and whether only their own state can tell.
type candidates map[events.WithdrawalID]bool

// mark takes note of an event's type. It may keep too many withdrawals, and each is
// looked at; it never drops one that is open.
func (c candidates) mark(id events.WithdrawalID, eventType string) {
	switch eventType {
	case events.WithdrawalRequested{}.Type():
		// Nobody holds it yet.
	case events.KeyClaimed{}.Type(), events.SendAttempted{}.Type(),
		events.SendRefused{}.Type(), events.SendUnconfirmed{}.Type():
		if _, marked := c[id]; !marked {
			c[id] = false
		}
	case events.OutcomeResolved{}.Type(), events.Released{}.Type():
		if look := c[id]; !look {
			delete(c, id)
		}
	default:
		c[id] = true // a late answer, or something that must not be passed over
	}
}
