package submissions

import (
	"context"
	"errors"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// Moment is a point in a log's past: a time, by the clocks that recorded the events, or a
// position of the log, or both. The zero Moment is now.
type Moment struct {
	Time     time.Time
	Position eventlog.Position
}

// includes reports whether an event was there at the moment.
func (m Moment) includes(at time.Time, p eventlog.Position) bool {
	return (m.Time.IsZero() || !at.After(m.Time)) && (m.Position == eventlog.Start || p <= m.Position)
}

// History returns the events of a withdrawal in order: who did what and when. Where the
// stream is damaged it returns the events before the damage, and the damaged refusal.
// Other refusals: invalid-request, not-found, unavailable.
func (l *Ledger) History(ctx context.Context, id events.WithdrawalID) ([]events.Recorded, error) {
	history, _, err := l.HistoryAsOf(ctx, id, Moment{})
	return history, err
}

// HistoryAsOf returns the events that a withdrawal had at a moment, and its status then: a
// send that was within its deadline at that time is sending. At a position, the time is
// that of the last event. Where clocks disagree, the first event that is later than the
// moment ends the history. Refusals are those of History; not-found also when the
// withdrawal was not requested yet.
func (l *Ledger) HistoryAsOf(ctx context.Context, id events.WithdrawalID, m Moment) ([]events.Recorded, Status, error) {
	if err := errors.Join(l.tenant.Validate(), id.Validate()); err != nil {
		return nil, Status{}, aggregate.Invalid(err)
	}
	f := folded[aggregate.Withdrawal]{chain: l.codec.Chain(id.Stream())}
	var history []events.Recorded
	var damaged error
	now := m.Time
	for stored, err := range l.log.ReadStream(ctx, id.Stream(), 0) {
		var recorded events.Recorded
		before := f
		if err == nil {
			recorded, err = f.read(stored)
		}
		if err != nil {
			damaged = refusalOf(err)
			break
		}
		at := recorded.Metadata.RecordedAt.Time()
		if !m.includes(at, stored.Position) {
			f = before
			break
		}
		if m.Time.IsZero() && m.Position != eventlog.Start {
			now = at
		}
		history = append(history, recorded)
	}
	if now.IsZero() {
		now = l.Clock()
	}
	var no *aggregate.NoLedger
	if err := l.act(ctx); errors.As(err, &no) && no.Keeper == aggregate.Coming {
		return nil, Status{}, err // a history without its end
	}
	if damaged != nil && len(history) == 0 {
		return nil, Status{}, damaged
	}
	if err := (aggregate.Claimant{Tenant: l.tenant, Withdrawal: f.state}).Known(id); err != nil {
		return nil, Status{}, err
	}
	return history, l.statusAt(f.state, now), damaged
}
