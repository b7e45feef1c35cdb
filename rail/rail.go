package rail

import (
	"context"
	"time"

	"holdfast/events"
)

// Limits on what a rail may answer. What is longer is cut down where it is recorded,
// with a note of what was left out; an answer is never lost for its size.
const (
	// MaxReference is the longest rail reference, in bytes.
	MaxReference = 255
	// MaxResponse is the longest response body that is kept verbatim, in bytes.
	MaxResponse = 32 << 10
	// MaxReason is the longest reason or cause that is kept, in bytes.
	MaxReason = 1024
)

// Payment is what a rail is asked to send, once.
type Payment struct {
	Withdrawal  events.WithdrawalID
	Account     string
	Amount      events.Amount
	Currency    string
	Destination string
	// Token is the idempotency key to hand on to the rail. It is the same for every
	// attempt of the withdrawal, so that a rail that honours it is a second line of
	// defence.
	Token string
	// Attempt counts the calls of a rail for this withdrawal, from 1.
	Attempt int
}

// Receipt is a rail's answer that the money was sent.
type Receipt struct {
	// Reference is the rail's own name for the payment: 1 to MaxReference bytes. A
	// receipt without one is not a receipt: the result is then unknown.
	Reference string
	// Response is the rail's response, to be kept and replayed verbatim. It may be
	// empty.
	Response events.Response
	// Fee is what the rail took on top of the amount, in the same currency; the zero value
	// where it does not say.
	Fee events.Amount
	// Time is when the money left by the rail's own clock, in the years 1 to 9999; the zero
	// value where it does not say, and any other year is taken for that.
	Time time.Time
}

// Sender sends one payment. See the package comment for what its results mean. It is
// called at most once per attempt, and may be called from any goroutine. Beside an error
// the receipt is empty: a refusal that comes with a reference contradicts itself, and
// asserts nothing.
type Sender func(ctx context.Context, p Payment) (Receipt, error)

// Refusal is the error by which a Sender asserts that nothing left and that nothing
// will: the rail said a clean no. Any other error leaves the outcome unknown.
type Refusal struct {
	// Reason says why, in the rail's words.
	Reason string
	// Response is the rail's response, kept verbatim. It may be empty.
	Response events.Response
}

// Error returns the reason. A nil refusal, which is what a Sender returns that keeps
// its refusal in a *Refusal variable and never sets it, has a text as well: it is an
// error that asserts nothing, and must not bring down whoever prints it.
func (r *Refusal) Error() string {
	if r == nil {
		return "rail: a nil refusal, which asserts nothing"
	}
	return "rail refused: " + r.Reason
}

// AsRefusal reports whether err is a clean refusal (A8). It looks through wrapping by
// %w, and not through errors that join several: a refusal beside another failure does
// not assert that nothing left. Nor does a nil *Refusal.
func AsRefusal(err error) (*Refusal, bool) {
	for err != nil {
		if r, ok := err.(*Refusal); ok {
			return r, r != nil
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return nil, false
		}
		err = u.Unwrap()
	}
	return nil, false
}

// Verdict is what a rail knows of a withdrawal.
type Verdict string

const (
	// VerdictSent means that the money left; Knowledge.Reference says as what.
	VerdictSent Verdict = "sent"
	// VerdictRefused means that the rail refused it: nothing left and nothing will, by
	// Knowledge.Attempt and those before it. It says nothing of a later attempt.
	VerdictRefused Verdict = "refused"
	// VerdictUnknown means that the rail cannot say. It is not a no.
	VerdictUnknown Verdict = "unknown"
)

// Knowledge is a rail's answer to "what do you know of this withdrawal?".
type Knowledge struct {
	Verdict Verdict
	// Reference is set when Verdict is VerdictSent.
	Reference string
	// Attempt is the attempt that Verdict speaks of, or 0 where the rail cannot tell.
	// Who closes a withdrawal on a refusal must see that it is the latest attempt: a
	// later one may still be on its way.
	Attempt int
	// Detail is the rail's own words, for a person to read. It may be empty.
	Detail string
}

// Rail is a rail that can be asked as well as paid through.
type Rail interface {
	// Name is the rail's name, as recorded with each attempt: "simulated", say.
	Name() string
	// Send is a Sender.
	Send(ctx context.Context, p Payment) (Receipt, error)
	// LookUp says what the rail knows of a withdrawal. It sends nothing and changes
	// nothing. An error means that the rail could not be asked.
	LookUp(ctx context.Context, withdrawal events.WithdrawalID) (Knowledge, error)
}
