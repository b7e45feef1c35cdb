package aggregate

import (
	"errors"
	"fmt"
	"time"

	"holdfast/events"
)

// Refusal is the error of every command that was refused or did not end: a code, a
// sentence for a person, and the facts that the caller may know. It never carries
// another caller's values.
type Refusal struct {
	Code Code
	// Message is one sentence: what was wrong, and where.
	Message string
	// Withdrawal and Key say what the refusal is about, where it is about one.
	Withdrawal events.WithdrawalID
	Key        events.RequestKey
	// Holder is the key that holds the withdrawal's claim (A5).
	Holder events.RequestKey
	// Fields names the fields that differ (A3, A11, A15).
	Fields []string
	// State and Since say how far the claim got, and since when (A4).
	State State
	Since time.Time
	// Until is when the running attempt's deadline, or the time until which it must
	// be taken for running, is over. It is zero where that is not the matter.
	Until time.Time
	// Cause is the error behind the refusal, where there is one (A7).
	Cause error
}

func (r *Refusal) Error() string {
	if r.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", r.Code, r.Message, r.Cause)
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Message)
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

// CodeOf returns the code of the refusal in err's chain, and false when there is none.
func CodeOf(err error) (Code, bool) {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code, true
	}
	return "", false
}

// Invalid returns the refusal of malformed input. The errors say what is wrong, each
// with what to do about it.
func Invalid(errs ...error) *Refusal {
	return &Refusal{Code: CodeInvalidRequest, Message: errors.Join(errs...).Error()}
}

func refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}
