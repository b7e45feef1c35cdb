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
	// Seen is the number of events that the withdrawal had when the person looked. A word
	// about any other number than there is now is refused.
	Seen uint64
}

// Validate returns an invalid-request refusal that says everything that is malformed,
// and nil when nothing is.
func (c ReleaseCommand) Validate(t events.Tenant, k events.RequestKey) error {
	if err := errors.Join(t.Validate(), k.Validate(),
		events.ValidateText("reason", c.Reason), events.ValidateText("evidence", c.Evidence), validateSeen(c.Seen)); err != nil {
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
	if err := c.unseen(cmd.Seen); err != nil {
		return Plan{}, err
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

// validateSeen refuses the word that nothing left from somebody who does not say when that
// was so: repeated after its answer was lost, it would be taken for a word about the key's
// next claim (B4).
func validateSeen(seen uint64) error {
	if seen == 0 {
		return errors.New("how many events of the withdrawal were seen is missing; look at it first, and hand on the Events of its status as Seen")
	}
	return nil
}

// unseen refuses a person's word about a withdrawal that has moved on since they looked:
// what they saw was taken while an attempt could still end (B4).
func (c Claimant) unseen(seen uint64) error {
	w := c.Withdrawal
	if seen == 0 || seen == w.next {
		return nil
	}
	r := refuse(CodeAttemptRunning, "withdrawal %s has moved on since it was looked at (%d events then, %d now); look again",
		w.requested.Withdrawal, seen, w.next)
	r.Key, r.Withdrawal = c.Key, w.requested.Withdrawal
	r.State, r.Since = w.State(c.Now)
	return r
}
