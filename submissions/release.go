package submissions

import (
	"context"
	"errors"

	"holdfast/aggregate"
	"holdfast/events"
)

// Release is a person's word that nothing was sent.
type Release struct {
	By
	// Reason says why, and Evidence what the person looked at; both are required.
	Reason   string
	Evidence string
	// Seen is the Events of the Status that the person looked at; it is required. So the
	// word cannot be taken for one about what happened since: an attempt that has ended,
	// or the same key's next claim.
	Seen uint64
}

// Release frees a key and its withdrawal: "I looked, nothing was sent". Whoever comes
// next, under any key, becomes the holder.
//
// Refusals: invalid-request; not-found for a key that holds no claim (any more);
// already-resolved once there is an outcome; attempt-running until the attempt has
// reported or its deadline is ClockMargin ago, and when
// the withdrawal has moved on since it was Seen; damaged; unavailable.
func (l *Ledger) Release(ctx context.Context, key events.RequestKey, r Release) (Status, error) {
	cmd := aggregate.ReleaseCommand{Reason: r.Reason, Evidence: r.Evidence, Margin: l.ClockMargin, Seen: r.Seen}
	if err := l.person(r.By); err != nil {
		return Status{}, err
	}
	if err := cmd.Validate(l.tenant, key); err != nil {
		return Status{}, err
	}
	subject, _, err := l.decide(ctx, key, "", r.By, func(c aggregate.Claimant) (aggregate.Plan, error) {
		return aggregate.Release(cmd, c)
	})
	if r := (*Refusal)(nil); errors.As(err, &r) && r.Code == CodeUnavailable {
		r.Message = "it is not known whether the claim was released; look again before saying so again, with what is then to be Seen"
	}
	if err != nil {
		return Status{}, err
	}
	return l.status(subject.withdrawal.state), nil
}

// person refuses a word that nobody stands behind (B6).
func (l *Ledger) person(by By) error {
	if err := events.ValidateName("actor", by.Actor); err != nil {
		return aggregate.Invalid(err)
	}
	if err := by.metadata(l.Clock()).Validate(); err != nil {
		return aggregate.Invalid(err)
	}
	return nil
}
