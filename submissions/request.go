package submissions

import (
	"context"

	"holdfast/aggregate"
)

// Request is a withdrawal to be requested. All of its fields are required.
type Request struct {
	By
	// Account is where the money is taken from: 1 to 128 letters, digits and . _ ~ : -
	Account string
	// Reference is the caller's business reference, 1 to 255 visible ASCII characters:
	// the same account and reference are the same withdrawal.
	Reference string
	// Amount is a decimal string such as "10.25": at most 38 digits, 18 after the point.
	Amount string
	// Currency is 1 to 16 capital letters and digits.
	Currency string
	// Destination is where the rail is to send it: 1 to 512 bytes of printable text.
	Destination string
}

// Request records a withdrawal and mints its id (A11). Requesting the same again
// returns the same withdrawal; with other details under the same account and reference
// it is refused as reference-reused, naming the withdrawal and the fields. Other codes:
// invalid-request, damaged, unavailable.
func (l *Ledger) Request(ctx context.Context, r Request) (Status, error) {
	event, err := aggregate.RequestCommand{
		Tenant: l.tenant, Account: r.Account, Reference: r.Reference,
		Amount: r.Amount, Currency: r.Currency, Destination: r.Destination,
	}.Event()
	if err != nil {
		return Status{}, err
	}
	if err := r.metadata(l.Clock()).Validate(); err != nil {
		return Status{}, aggregate.Invalid(err)
	}
	subject, _, err := l.decide(ctx, "", event.Withdrawal, r.By, func(c aggregate.Claimant) (aggregate.Plan, error) {
		return aggregate.Request(event, c.Withdrawal)
	})
	if err != nil {
		return Status{}, err
	}
	return l.status(subject.withdrawal.state), nil
}
