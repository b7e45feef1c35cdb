package aggregate

import (
	"errors"
	"strings"

	"holdfast/events"
)

// RequestCommand asks for a withdrawal to be recorded, so that it can be submitted.
type RequestCommand struct {
	Tenant      events.Tenant
	Account     string
	Reference   string
	Amount      string
	Currency    string
	Destination string
}

// Event returns the request as the event it would be recorded as, with the id that the
// account and reference always get. It returns an invalid-request refusal that says
// everything that is malformed.
func (c RequestCommand) Event() (events.WithdrawalRequested, error) {
	amount, amountErr := events.ParseAmount(c.Amount)
	if err := errors.Join(c.Tenant.Validate(), events.ValidateAccount(c.Account), events.ValidateReference(c.Reference),
		amountErr, events.ValidateCurrency(c.Currency), events.ValidateDestination(c.Destination)); err != nil {
		return events.WithdrawalRequested{}, Invalid(err)
	}
	return events.WithdrawalRequested{
		Tenant: c.Tenant, Withdrawal: events.MintWithdrawalID(c.Tenant, c.Account, c.Reference),
		Account: c.Account, Reference: c.Reference, Amount: amount, Currency: c.Currency, Destination: c.Destination,
	}, nil
}

// Request decides whether a withdrawal may be recorded (A11). The plan is empty when
// the same was requested before; with other details it is refused as reference-reused,
// naming the fields and the withdrawal that has the reference.
func Request(e events.WithdrawalRequested, w Withdrawal) (Plan, error) {
	if _, _, ok := w.Requested(); !ok {
		return Plan{Withdrawal: []events.Event{e}}, nil
	}
	wanted := events.Identity{Withdrawal: e.Withdrawal, Amount: e.Amount, Currency: e.Currency, Destination: e.Destination}
	fields := w.Identity().Differences(wanted)
	if len(fields) == 0 {
		return Plan{}, nil
	}
	r := refuse(CodeReferenceReused, "account %s already has withdrawal %s under reference %s, with another %s",
		e.Account, e.Withdrawal, events.Quote(e.Reference), strings.Join(fields, ", "))
	r.Withdrawal, r.Fields = e.Withdrawal, fields
	return Plan{}, r
}
