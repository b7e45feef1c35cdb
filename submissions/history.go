package submissions

import (
	"context"
	"errors"

	"holdfast/aggregate"
	"holdfast/events"
)

// History returns the events of a withdrawal in order: who did what and when. Where the
// stream is damaged it returns the events before the damage, and the damaged refusal.
// Other refusals: invalid-request, not-found, unavailable.
func (l *Ledger) History(ctx context.Context, id events.WithdrawalID) ([]events.Recorded, error) {
	if err := errors.Join(l.tenant.Validate(), id.Validate()); err != nil {
		return nil, aggregate.Invalid(err)
	}
	f := folded[aggregate.Withdrawal]{chain: l.codec.Chain(id.Stream())}
	var history []events.Recorded
	var damaged error
	for stored, err := range l.log.ReadStream(ctx, id.Stream(), 0) {
		var recorded events.Recorded
		if err == nil {
			recorded, err = f.read(stored)
		}
		if err != nil {
			damaged = refusalOf(err)
			break
		}
		history = append(history, recorded)
	}
	var no *aggregate.NoLedger
	if err := l.act(ctx); errors.As(err, &no) && no.Keeper == aggregate.Coming {
		return nil, err // a history without its end
	}
	if damaged != nil && len(history) == 0 {
		return nil, damaged
	}
	if err := (aggregate.Claimant{Tenant: l.tenant, Withdrawal: f.state}).Known(id); err != nil {
		return nil, err
	}
	return history, damaged
}
