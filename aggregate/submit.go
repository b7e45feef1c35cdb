package aggregate

import (
	"errors"
	"time"

	"holdfast/events"
)

// SubmitCommand asks for a withdrawal to be sent, under a key.
type SubmitCommand struct {
	Withdrawal events.WithdrawalID
	Restated   Restated
	// Rail is the name under which the attempt is recorded.
	Rail string
	// Deadline is when the rail call would end.
	Deadline time.Time
}

// Validate returns an invalid-request refusal that says everything that is malformed,
// and nil when nothing is.
func (c SubmitCommand) Validate(t events.Tenant, k events.RequestKey) error {
	_, amountErr := c.Restated.parse()
	if err := errors.Join(t.Validate(), k.Validate(), c.Withdrawal.Validate(), amountErr, events.ValidateName("rail", c.Rail)); err != nil {
		return Invalid(err)
	}
	return nil
}

// Submit decides a submission. A plan with events is to be appended, and then the rail
// is to be called, once, as the attempt that the plan records. An empty plan means that
// the key has its outcome, to be replayed (A2).
func Submit(cmd SubmitCommand, c Claimant) (Plan, error) {
	if err := c.Known(cmd.Withdrawal); err != nil {
		return Plan{}, err
	}
	if err := cmd.Restated.match(c.Withdrawal); err != nil {
		return Plan{}, err
	}
	w := c.Withdrawal
	attempt := events.SendAttempted{
		Attempt: w.attempts + 1, Deadline: events.At(cmd.Deadline), Token: string(cmd.Withdrawal), Rail: cmd.Rail,
	}
	if c.holds() {
		switch {
		case w.outcome != nil:
			return Plan{}, nil
		case w.claim.Attempt != nil:
			return Plan{}, c.inFlight()
		case w.dispute != nil:
			return Plan{}, w.disputed()
		}
		return Plan{Withdrawal: []events.Event{attempt}}, nil // A9: nothing was sent
	}
	return c.claim(attempt, false)
}

// inFlight refuses a key whose attempt was made and has no outcome: which sub-state it
// is in, since when, and what the rail said (A4).
func (c Claimant) inFlight() error {
	w := c.Withdrawal
	state, since := w.State(c.Now)
	r := refuse(CodeInFlight, "key %s has a submission of withdrawal %s in flight (%s)",
		events.Quote(string(c.Key)), w.requested.Withdrawal, state)
	r.Key, r.Withdrawal, r.State, r.Since = c.Key, w.requested.Withdrawal, state, since
	if state == StateSending {
		r.Until = w.claim.Attempt.Deadline
	}
	return r
}
