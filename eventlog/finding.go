package eventlog

import "context"

// Examined is implemented by a Log that can look at how it is kept: whether everything
// that its use needs is there and allowed, and whether nothing will take events away.
type Examined interface {
	Log
	// Examine looks, and leaves no event behind. It returns one Finding for each thing
	// that it looked at, and an error only when it could not look to the end: the
	// context's cause, or [ErrClosed]. A log that cannot be reached is a finding.
	Examine(ctx context.Context) ([]Finding, error)
}

// Finding is what an examination found about one thing.
type Finding struct {
	// Check is the name of what was looked at, in one or two words.
	Check string
	// Grade says how bad it is.
	Grade Grade
	// Detail is a full clause that says what was found.
	Detail string
	// Remedy says what to do about it, as an instruction. It is empty when all is well.
	Remedy string
}

// Grade says how bad a finding is.
type Grade string

const (
	// Fine: as it should be.
	Fine Grade = "ok"
	// Risky: everything works, and something may go wrong one day.
	Risky Grade = "warning"
	// Forbidden: the user is not allowed what the log's use needs.
	Forbidden Grade = "forbidden"
	// Losing: events were taken away, or will be.
	Losing Grade = "damaged"
	// Unreachable: it cannot be used now.
	Unreachable Grade = "unavailable"
)
