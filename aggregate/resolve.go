package aggregate

import (
	"errors"
	"fmt"
	"strings"

	"holdfast/events"
)

// ResolveCommand is a person's word: "I looked, here is what happened".
type ResolveCommand struct {
	Withdrawal events.WithdrawalID
	Restated   Restated
	// Result is events.ResultSent, with the rail's Reference, or events.ResultFailed,
	// without one: nothing left, and the withdrawal is given up.
	Result    events.Result
	Reference string
	// Reason says why the person resolves it so, and Evidence what they looked at.
	Reason   string
	Evidence string
	// Seen is the number of events that the withdrawal had when the person looked. A word
	// about any other number than there is now is refused. It may be 0, not stated, for
	// the result sent alone: money that left has left, whenever that was looked at.
	Seen uint64
}

// Validate returns an invalid-request refusal that says everything that is malformed,
// and nil when nothing is.
func (c ResolveCommand) Validate(t events.Tenant, k events.RequestKey) error {
	_, amountErr := c.Restated.parse()
	var idErr error
	if c.Withdrawal != "" { // what the key holds may be meant
		idErr = c.Withdrawal.Validate()
	}
	if err := errors.Join(t.Validate(), k.Validate(), idErr, amountErr, c.validateResult(),
		events.ValidateText("reason", c.Reason), events.ValidateText("evidence", c.Evidence)); err != nil {
		return Invalid(err)
	}
	return nil
}

func (c ResolveCommand) validateResult() error {
	switch {
	case c.Result == events.ResultSent && c.Reference == "":
		return errors.New("the outcome sent needs the rail's reference; if there is none, nobody has seen that it was sent")
	case c.Result == events.ResultSent:
		return events.ValidateText("reference", c.Reference)
	case c.Result == events.ResultFailed && c.Reference != "":
		return errors.New("the outcome failed has no reference; if the rail has one, the money left")
	case c.Result != events.ResultFailed:
		return fmt.Errorf("outcome %s is neither sent nor failed", events.Quote(string(c.Result)))
	}
	return validateSeen(c.Seen)
}

// Resolve decides a person's outcome for a key (B1). An unknown key takes the claim of
// an unclaimed withdrawal with it (B2). The plan is empty when the key has that outcome
// already (B3); on a disputed withdrawal the same outcome is recorded once more, as the
// person's word that closes the dispute (B7).
func Resolve(cmd ResolveCommand, c Claimant) (Plan, error) {
	if err := c.Known(cmd.Withdrawal); err != nil {
		return Plan{}, err
	}
	if err := cmd.Restated.match(c.Withdrawal); err != nil {
		return Plan{}, err
	}
	w := c.Withdrawal
	resolved := events.OutcomeResolved{
		Key: c.Key, Result: cmd.Result, Reference: cmd.Reference,
		Response: orComposed(events.Response{}, w, c.Key, cmd.Result, cmd.Reference),
		Source:   events.SourcePerson, Reason: cmd.Reason, Evidence: cmd.Evidence,
	}
	if c.holds() {
		switch {
		case w.outcome != nil && !w.outcome.Same(cmd.Result, cmd.Reference):
			return Plan{}, c.alreadyResolved()
		case w.outcome != nil && w.dispute == nil:
			return Plan{}, nil
		}
		if err := c.unseen(cmd.Seen); err != nil {
			return Plan{}, err
		}
		return Plan{Withdrawal: []events.Event{resolved}}, nil
	}
	plan, err := c.claim(resolved, true)
	if err != nil {
		return Plan{}, err
	}
	if err := c.unseen(cmd.Seen); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

func (c Claimant) alreadyResolved() error {
	o := c.Withdrawal.outcome
	said := string(o.Result)
	if o.Reference != "" {
		said = strings.Join([]string{said, "as", events.Quote(o.Reference)}, " ")
	}
	r := refuse(CodeAlreadyResolved, "key %s already has its outcome, %s, and it stands", events.Quote(string(c.Key)), said)
	if c.Withdrawal.dispute != nil {
		r.Message += "; resolving it with that outcome once more closes the dispute, and the rail's late answer stays on record beside it"
	}
	r.Key, r.Withdrawal, r.State, r.Since = c.Key, o.Withdrawal, State(o.Result), o.ResolvedAt
	return r
}
