package submissions

import (
	"context"

	"holdfast/aggregate"
	"holdfast/events"
)

// Finals knows the withdrawals for which keys have an outcome. It may lag behind the log,
// know nothing, or be wrong: what it says is looked up in the withdrawal's own stream, and
// where that does not say the same, the log is read as if there were no Finals. It spares
// a repeat the reading of the key's stream, and Outcome as well.
type Finals interface {
	// Final returns the withdrawal for which a key has an outcome, and false where none is
	// known.
	Final(ctx context.Context, tenant events.Tenant, key events.RequestKey) (id events.WithdrawalID, known bool, err error)
}

// final is the subject of a key whose outcome is known to be there; false when it is to be
// read in the order of the protocol. With an outcome under the key, the withdrawal's
// stream says all there is to say: the key can hold nothing else.
func (l *Ledger) final(ctx context.Context, k events.RequestKey, id events.WithdrawalID) (subject, bool) {
	if l.Finals == nil {
		return subject{}, false
	}
	known, found, err := l.Finals.Final(ctx, l.tenant, k)
	if err != nil || !found || id != "" && known != id || known.Validate() != nil {
		return subject{}, false
	}
	w, err := l.streams.withdrawal(ctx, known)
	if err != nil {
		return subject{}, false
	}
	requested, _, _ := w.state.Requested()
	outcome, _ := w.state.Outcome()
	if outcome.Key != k || requested.Tenant != l.tenant || l.act(ctx) != nil {
		return subject{}, false
	}
	return subject{now: l.Clock(), withdrawal: w, reserved: w.state}, true
}

// replay is the outcome of a submission that has one, if Finals knows of it.
func (l *Ledger) replay(ctx context.Context, k events.RequestKey, cmd aggregate.SubmitCommand) (Outcome, bool) {
	s, found := l.final(ctx, k, cmd.Withdrawal)
	if !found {
		return Outcome{}, false
	}
	if plan, err := aggregate.Submit(cmd, l.claimant(k, &s)); err != nil || !plan.Empty() {
		return Outcome{}, false
	}
	return outcomeOf(s.withdrawal.state, true), true
}
