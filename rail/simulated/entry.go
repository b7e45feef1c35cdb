package simulated

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"holdfast/events"
	"holdfast/rail"
)

// MaxLine is the longest line of a book, in bytes, with its newline. It holds a payment
// whose every field is at its limit.
const MaxLine = 16 << 10

// Entry is one line of the book: a payment that left, or one that was refused. Its JSON
// form is the line itself.
type Entry struct {
	// Time is when the entry was booked, in UTC, to the microsecond.
	Time time.Time
	// Refused means that nothing left. Reason then says why, and Reference is empty.
	Refused bool
	Reason  string
	// Reference is the rail's own name for the payment, unique within the book.
	Reference   string
	Withdrawal  events.WithdrawalID
	Account     string
	Amount      events.Amount
	Currency    string
	Destination string
	// Token is the idempotency key that came with the payment. It may be empty.
	Token string
	// Attempt counts the calls of the rail for the withdrawal, from 1.
	Attempt int
}

// timeLayout is RFC 3339 in UTC, always with microseconds.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// lineStart is what every line begins with. It tells the torn start of a line from the
// end of a file that is not a book, which must not be repaired.
const lineStart = `{"time":"`

// line is the wire form of an Entry. Time stays first: see lineStart.
type line struct {
	Time        string              `json:"time"`
	Refused     bool                `json:"refused,omitempty"`
	Reason      string              `json:"reason,omitempty"`
	Reference   string              `json:"reference,omitempty"`
	Withdrawal  events.WithdrawalID `json:"withdrawal"`
	Account     string              `json:"account"`
	Amount      events.Amount       `json:"amount"`
	Currency    string              `json:"currency"`
	Destination string              `json:"destination"`
	Token       string              `json:"token,omitempty"`
	Attempt     int                 `json:"attempt"`
}

// MarshalJSON returns the entry as its line in the book, without the newline. An entry
// that no book may hold is an error that says why.
func (e Entry) MarshalJSON() ([]byte, error) {
	b, err := encodeEntry(e)
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b, []byte("\n")), nil
}

// UnmarshalJSON reads one line of a book. What no book may hold is an error that says
// why: a field that is not known, one that is missing, one over its limit.
func (e *Entry) UnmarshalJSON(b []byte) error {
	decoded, err := decodeEntry(b)
	if err != nil {
		return err
	}
	*e = decoded
	return nil
}

// encodeEntry returns the entry's line, with its newline.
func encodeEntry(e Entry) ([]byte, error) {
	if err := e.validate(); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // a person reads the book
	if err := enc.Encode(line{
		Time:        e.Time.UTC().Format(timeLayout),
		Refused:     e.Refused,
		Reason:      e.Reason,
		Reference:   e.Reference,
		Withdrawal:  e.Withdrawal,
		Account:     e.Account,
		Amount:      e.Amount,
		Currency:    e.Currency,
		Destination: e.Destination,
		Token:       e.Token,
		Attempt:     e.Attempt,
	}); err != nil {
		return nil, err
	}
	if buf.Len() > MaxLine {
		return nil, fmt.Errorf("it takes %d bytes, and a line has at most %d", buf.Len(), MaxLine)
	}
	return buf.Bytes(), nil
}

// decodeEntry reads a line without its newline.
func decodeEntry(b []byte) (Entry, error) {
	// The JSON decoder would put U+FFFD in place of what is not UTF-8, and two ids that
	// differ would become one.
	if !utf8.Valid(b) {
		return Entry{}, errors.New("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var l line
	if err := dec.Decode(&l); err != nil {
		return Entry{}, fmt.Errorf("it is not an entry: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Entry{}, errors.New("it goes on after the entry")
	}
	at, err := time.Parse(timeLayout, l.Time)
	if err != nil {
		return Entry{}, fmt.Errorf("time %s is not in the form %s", events.Quote(l.Time), timeLayout)
	}
	e := Entry{
		Time:        at,
		Refused:     l.Refused,
		Reason:      l.Reason,
		Reference:   l.Reference,
		Withdrawal:  l.Withdrawal,
		Account:     l.Account,
		Amount:      l.Amount,
		Currency:    l.Currency,
		Destination: l.Destination,
		Token:       l.Token,
		Attempt:     l.Attempt,
	}
	return e, e.validate()
}

// validate says why no book may hold the entry. It asks for no more than the book needs:
// what a withdrawal may be is for the ledger to say.
func (e Entry) validate() error {
	for _, f := range []struct{ name, value string }{
		{"withdrawal", string(e.Withdrawal)},
		{"account", e.Account},
		{"amount", e.Amount.String()},
		{"currency", e.Currency},
		{"destination", e.Destination},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is missing", f.name)
		}
	}
	for _, f := range []struct{ name, value string }{
		{"withdrawal", string(e.Withdrawal)},
		{"account", e.Account},
		{"currency", e.Currency},
		{"destination", e.Destination},
		{"token", e.Token},
		{"reference", e.Reference},
		{"reason", e.Reason},
	} {
		if !utf8.ValidString(f.value) {
			return fmt.Errorf("%s is not UTF-8", f.name)
		}
	}
	switch {
	case e.Time.UTC().Year() < 1970 || e.Time.UTC().Year() > 9999:
		return errors.New("time is not between the years 1970 and 9999")
	case e.Attempt < 1:
		return fmt.Errorf("attempt is %d, and attempts count from 1", e.Attempt)
	case e.Refused && e.Reason == "":
		return errors.New("it is refused, and reason is missing")
	case e.Refused && e.Reference != "":
		return errors.New("it is refused, and has a reference")
	case !e.Refused && e.Reference == "":
		return errors.New("reference is missing")
	case !e.Refused && e.Reason != "":
		return errors.New("it has a reason, and is not refused")
	case len(e.Reference) > rail.MaxReference:
		return fmt.Errorf("reference is longer than %d bytes", rail.MaxReference)
	case len(e.Reason) > rail.MaxReason:
		return fmt.Errorf("reason is longer than %d bytes", rail.MaxReason)
	}
	return nil
}

// samePayment reports whether both are for the same money to the same place.
func (e Entry) samePayment(other Entry) bool {
	return e.Withdrawal == other.Withdrawal && e.Account == other.Account && e.Amount == other.Amount &&
		e.Currency == other.Currency && e.Destination == other.Destination
}
