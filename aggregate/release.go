package aggregate

import (
	"errors"
	"time"

	"holdfast/events"
)

// ReleaseCommand is a person's word: "I looked, nothing was sent".
type ReleaseCommand struct {
	// Reason says why the person releases it, and Evidence what they looked at.
	Reason   string
	Evidence string
	// Margin is for clocks that disagree: until the attempt's deadline is that long
	// ago, the attempt may still be running. Negative means none.
	Margin time.Duration
}

// Validate returns an invalid-request refusal that says everything that is malformed,
// and nil when nothing is.
func (c ReleaseCommand) Validate(t events.Tenant, k events.RequestKey) error {
	if err := errors.Join(t.Validate(), k.Validate(),
		events.ValidateText("reason", c.Reason), events.ValidateText("evidence", c.Evidence)); err != nil {
		return Invalid(err)
	}
	return nil
}

// Release decides whether a key's claim may be given up (B4): not once there is an
// outcome, and not while its attempt may be running. It frees the key and the
// withdrawal; a claim that has moved on to another key is never touched. The claimant's
// Withdrawal is the one that its key's last reservation points at.
func Release(cmd ReleaseCommand, c Claimant) (Plan, error) {
	if err := c.Bound(); err != nil {
		return Plan{}, err
	}
	w := c.Withdrawal
	if w.outcome != nil {
		return Plan{}, c.alreadyResolved()
	}
	if until, running := w.claim.RunningUntil(c.Now, cmd.Margin); running {
		r := refuse(CodeAttemptRunning, "the attempt under key %s may still be running; it can be released from %s on",
			events.Quote(string(c.Key)), events.At(until))
		r.Key, r.Withdrawal, r.Until = c.Key, w.requested.Withdrawal, until
		r.State, r.Since = w.State(c.Now)
		return Plan{}, r
	}
	return Plan{Withdrawal: []events.Event{events.Released{Key: c.Key, Reason: cmd.Reason, Evidence: cmd.Evidence}}}, nil
}
