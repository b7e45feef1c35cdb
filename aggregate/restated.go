package aggregate

import (
	"strings"

	"holdfast/events"
)

// Restated is what a caller believes it is paying. What it leaves empty is not compared.
type Restated struct {
	// Amount is a decimal string; it is compared as an amount: 10 and 10.00 are one.
	Amount      string
	Currency    string
	Destination string
}

// parse reads what was restated; the error says what is malformed.
func (r Restated) parse() (amount events.Amount, err error) {
	if r.Amount != "" {
		return events.ParseAmount(r.Amount)
	}
	return events.Amount{}, nil
}

// match refuses details that differ from what was requested (A15), naming the fields.
func (r Restated) match(w Withdrawal) error {
	amount, err := r.parse()
	if err != nil {
		return Invalid(err)
	}
	requested, believed := w.Identity(), w.Identity()
	if r.Amount != "" {
		believed.Amount = amount
	}
	if r.Currency != "" {
		believed.Currency = r.Currency
	}
	if r.Destination != "" {
		believed.Destination = r.Destination
	}
	fields := requested.Differences(believed)
	if len(fields) == 0 {
		return nil
	}
	refusal := refuse(CodeDetailsDiffer, "withdrawal %s was requested with another %s", requested.Withdrawal, strings.Join(fields, ", "))
	refusal.Withdrawal, refusal.Fields = requested.Withdrawal, fields
	return refusal
}
