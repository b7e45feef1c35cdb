package submissions

import (
	"context"

	"holdfast/aggregate"
	"holdfast/events"
)

// Resolution is a person's word on what happened.
type Resolution struct {
	By
	// Withdrawal is the withdrawal that is meant. It may be left empty for a key that
	// has submitted one.
	Withdrawal events.WithdrawalID
	// Restated is what the person believes was paid; a difference is refused.
	Restated Restated
	// Result is events.ResultSent, with the rail's Reference, or events.ResultFailed:
	// nothing left, and the withdrawal is given up.
	Result    events.Result
	Reference string
	// Reason says why, and Evidence what the person looked at; both are required.
	Reason   string
	Evidence string
	// Seen is the Events of the Status that the person looked at, so that the word cannot
	// be taken for one about what happened since. The result failed requires it; for sent
	// it may be 0, not stated: money that left has left, whenever that was looked at.
	Seen uint64
}

// Resolve closes a key with an outcome: "I looked, here is what happened". From then on
// Submit replays it. A key that was never used takes an unclaimed withdrawal's claim
// with it. Resolving again with the same outcome succeeds and changes nothing; on a
// disputed withdrawal it closes the dispute.
//
// Refusals: invalid-request, not-found, details-differ, key-reused, withdrawal-claimed
// (naming the holder), already-resolved, attempt-running when the withdrawal has
// moved on since it was Seen, damaged, unavailable.
func (l *Ledger) Resolve(ctx context.Context, key events.RequestKey, r Resolution) (Outcome, error) {
	cmd := aggregate.ResolveCommand{
		Withdrawal: r.Withdrawal, Restated: r.Restated, Result: r.Result, Reference: r.Reference,
		Reason: r.Reason, Evidence: r.Evidence, Seen: r.Seen,
	}
	if err := l.person(r.By); err != nil {
		return Outcome{}, err
	}
	if err := cmd.Validate(l.tenant, key); err != nil {
		return Outcome{}, err
	}
	subject, plan, err := l.decide(ctx, key, cmd.Withdrawal, r.By, func(c aggregate.Claimant) (aggregate.Plan, error) {
		if r.Withdrawal == "" { // what the key holds is meant, and nothing else
			if err := c.Bound(); err != nil {
				return aggregate.Plan{}, err
			}
			cmd.Withdrawal = c.Withdrawal.Identity().Withdrawal
		}
		return aggregate.Resolve(cmd, c)
	})
	if err != nil {
		return Outcome{}, err
	}
	return outcomeOf(subject.withdrawal.state, plan.Empty()), nil
}
