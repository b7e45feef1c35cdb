package events

import (
	"errors"
	"fmt"
)

// Event is one of the event types of this package.
type Event interface {
	// Type is the event type's name as written in the log.
	Type() string
	// validate returns an error when a field holds what no event of the type may
	// hold. It is asked before an event is written and after it is read.
	validate() error
}

// Result is how a withdrawal ended, or what a rail answered.
type Result string

const (
	// ResultSent means that the money left, under the rail's reference.
	ResultSent Result = "sent"
	// ResultFailed means that nothing left and that the withdrawal is given up.
	ResultFailed Result = "failed"
	// ResultRefused is a rail's clean no: nothing left. It is no outcome yet.
	ResultRefused Result = "refused"
	// ResultUnknown is the answer of a rail call that ended without one.
	ResultUnknown Result = "unknown"
)

// Source says whose word an outcome is.
type Source string

const (
	// SourceRail means that the rail answered the attempt.
	SourceRail Source = "rail"
	// SourcePerson means that a person looked and resolved it.
	SourcePerson Source = "person"
)

// WithdrawalRequested is the first event of a withdrawal's stream: money that should
// leave once.
type WithdrawalRequested struct {
	Tenant      Tenant       `json:"tenant"`
	Withdrawal  WithdrawalID `json:"withdrawal"`
	Account     string       `json:"account"`
	Reference   string       `json:"reference"`
	Amount      Amount       `json:"amount"`
	Currency    string       `json:"currency"`
	Destination string       `json:"destination"`
}

// KeyReserved, in a key's stream, says that the key will claim the withdrawal as the
// event at revision At of the withdrawal's stream. Whether it did is read there.
type KeyReserved struct {
	Tenant      Tenant       `json:"tenant"`
	Key         RequestKey   `json:"key"`
	Withdrawal  WithdrawalID `json:"withdrawal"`
	Fingerprint Fingerprint  `json:"fingerprint"`
	At          uint64       `json:"at"`
}

// KeyClaimed gives a key the exclusive right to submit the withdrawal.
type KeyClaimed struct {
	Key         RequestKey  `json:"key"`
	Fingerprint Fingerprint `json:"fingerprint"`
}

// SendAttempted says that the rail is about to be called, once, and until when.
type SendAttempted struct {
	// Attempt counts the attempts of the withdrawal, from 1.
	Attempt int `json:"attempt"`
	// Deadline is when the rail call's context ends.
	Deadline Timestamp `json:"deadline"`
	// Token is the idempotency key handed on to the rail.
	Token string `json:"token"`
	// Rail is the name of the rail, or of the caller's own send function.
	Rail string `json:"rail"`
}

// SendRefused says that the rail refused the attempt cleanly: nothing left.
type SendRefused struct {
	Attempt  int       `json:"attempt"`
	Reason   string    `json:"reason"`
	Response *Response `json:"response,omitempty"`
}

// SendUnconfirmed says that the attempt is over and that nobody knows what it did.
type SendUnconfirmed struct {
	Attempt int    `json:"attempt"`
	Cause   string `json:"cause"`
}

// OutcomeResolved is the outcome: final once recorded. A second one, with the same
// result and reference, is a person's word that closes a dispute.
type OutcomeResolved struct {
	Key    RequestKey `json:"key"`
	Result Result     `json:"result"`
	// Reference is the rail's reference; never empty when Result is sent.
	Reference string `json:"reference,omitempty"`
	// Response is the answer that is replayed, verbatim.
	Response Response `json:"response"`
	Source   Source   `json:"source"`
	// Attempt is the attempt that the rail answered, when Source is rail.
	Attempt int `json:"attempt,omitempty"`
	// Reason and Evidence are the person's, when Source is person (B6).
	Reason   string `json:"reason,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	// Fee is what the rail took for it, in the withdrawal's currency and on top of its
	// amount; the zero value where nobody said. Since schema version 2.
	Fee Amount `json:"fee,omitzero"`
	// RailTime is when the money left by the rail's own clock; the zero value where nobody
	// said. Since schema version 2.
	RailTime Timestamp `json:"rail_time,omitzero"`
}

// Released says that a person looked, that nothing was sent, and that the key and the
// withdrawal are free.
type Released struct {
	Key      RequestKey `json:"key"`
	Reason   string     `json:"reason"`
	Evidence string     `json:"evidence"`
}

// LateOutcomeReported is a rail's answer that came when the stream had moved on: after
// a resolve, or after a release (B7). It is evidence; it decides nothing.
type LateOutcomeReported struct {
	Key       RequestKey `json:"key"`
	Attempt   int        `json:"attempt"`
	Result    Result     `json:"result"`
	Reference string     `json:"reference,omitempty"`
	Detail    string     `json:"detail,omitempty"`
	Response  *Response  `json:"response,omitempty"`
	// Fee and RailTime are what OutcomeResolved says of them. Since schema version 2.
	Fee      Amount    `json:"fee,omitzero"`
	RailTime Timestamp `json:"rail_time,omitzero"`
}

func (WithdrawalRequested) Type() string { return "WithdrawalRequested" }
func (KeyReserved) Type() string         { return "KeyReserved" }
func (KeyClaimed) Type() string          { return "KeyClaimed" }
func (SendAttempted) Type() string       { return "SendAttempted" }
func (SendRefused) Type() string         { return "SendRefused" }
func (SendUnconfirmed) Type() string     { return "SendUnconfirmed" }
func (OutcomeResolved) Type() string     { return "OutcomeResolved" }
func (Released) Type() string            { return "Released" }
func (LateOutcomeReported) Type() string { return "LateOutcomeReported" }

func (e WithdrawalRequested) validate() error {
	return errors.Join(
		e.Tenant.Validate(), e.Withdrawal.Validate(), ValidateAccount(e.Account), ValidateReference(e.Reference),
		e.Amount.validate(), ValidateCurrency(e.Currency), ValidateDestination(e.Destination))
}

func (e KeyReserved) validate() error {
	return errors.Join(e.Tenant.Validate(), e.Key.Validate(), e.Withdrawal.Validate(), e.Fingerprint.Validate(),
		check(e.At > 0, "at must be after the withdrawal's request"))
}

func (e KeyClaimed) validate() error {
	return errors.Join(e.Key.Validate(), e.Fingerprint.Validate())
}

func (e SendAttempted) validate() error {
	return errors.Join(validateAttempt(e.Attempt), check(!e.Deadline.IsZero(), "deadline is missing"),
		validateVisible("token", e.Token, MaxReference), ValidateName("rail", e.Rail))
}

func (e SendRefused) validate() error {
	return errors.Join(validateAttempt(e.Attempt), validateLength("reason", e.Reason, MaxText))
}

func (e SendUnconfirmed) validate() error {
	return errors.Join(validateAttempt(e.Attempt), validateLength("cause", e.Cause, MaxText))
}

func (e OutcomeResolved) validate() error {
	err := errors.Join(e.Key.Validate(), check(e.Response.MediaType != "", "response is missing"))
	switch e.Result {
	case ResultSent:
		err = errors.Join(err, validateLength("reference", e.Reference, MaxReference))
	case ResultFailed:
		err = errors.Join(err, check(e.Reference == "", "a failed outcome has no reference"),
			check(e.Fee == Amount{} && e.RailTime.IsZero(), "a failed outcome has neither a fee nor a time at the rail"))
	default:
		err = errors.Join(err, fmt.Errorf("result %s is not an outcome", Quote(string(e.Result))))
	}
	switch e.Source {
	case SourceRail:
		return errors.Join(err, validateAttempt(e.Attempt))
	case SourcePerson:
		return errors.Join(err, ValidateText("reason", e.Reason), ValidateText("evidence", e.Evidence))
	}
	return errors.Join(err, fmt.Errorf("source %s is not known", Quote(string(e.Source))))
}

func (e Released) validate() error {
	return errors.Join(e.Key.Validate(), ValidateText("reason", e.Reason), ValidateText("evidence", e.Evidence))
}

func (e LateOutcomeReported) validate() error {
	err := errors.Join(e.Key.Validate(), validateAttempt(e.Attempt))
	switch e.Result {
	case ResultSent:
		return errors.Join(err, validateLength("reference", e.Reference, MaxReference))
	case ResultRefused, ResultUnknown:
		return errors.Join(err, check(e.Fee == Amount{} && e.RailTime.IsZero(), "only what was sent has a fee and a time at the rail"))
	}
	return errors.Join(err, fmt.Errorf("result %s is not a rail's answer", Quote(string(e.Result))))
}

func (a Amount) validate() error { return check(a != Amount{}, "amount is missing") }

func validateAttempt(n int) error { return check(n > 0, "attempt must count from 1") }

func check(ok bool, complaint string) error {
	if ok {
		return nil
	}
	return errors.New(complaint)
}
