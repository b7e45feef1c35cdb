package eventlog

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknownResult is returned by Append when the events may or may not be in
	// the log. The same append, byte for byte, may be tried again; its answer will
	// then say what happened.
	ErrUnknownResult = errors.New("eventlog: the result of the append is not known")

	// ErrNotExecuted is returned by Append when it is certain that nothing was
	// written (by the stream append that failed; see [Log.Append] on engines that
	// apply several one after another). The same append may be tried again.
	ErrNotExecuted = errors.New("eventlog: the append was not executed")

	// ErrUnavailable is returned by reads when the engine cannot be read now.
	ErrUnavailable = errors.New("eventlog: the log cannot be read")

	// ErrClosed is returned by every call on a log that has been closed. Nothing
	// was written.
	ErrClosed = errors.New("eventlog: the log is closed")
)

// Conflict is returned by Append when the stream did not hold exactly the number of
// events that the append stated. Nothing of that stream append was written. The only
// right answer is to read the stream and to decide again.
type Conflict struct {
	// Stream is the stream that was elsewhere than expected.
	Stream string
	// At is the revision that the append stated.
	At uint64
	// Actual is the number of events in the stream, where the engine knows it;
	// otherwise it is nil.
	Actual *uint64
}

func (c *Conflict) Error() string {
	if c.Actual == nil {
		return fmt.Sprintf("eventlog: conflict on stream %q: expected exactly %d events", c.Stream, c.At)
	}
	return fmt.Sprintf("eventlog: conflict on stream %q: expected exactly %d events, it has %d", c.Stream, c.At, *c.Actual)
}

// Damaged is returned when a stream is not what an append-only stream can be: it
// does not start at revision 0, or revisions are missing (SPEC D5). Nothing was
// written.
type Damaged struct {
	Stream string
	// Kind tells the findings apart.
	Kind DamageKind
	// Reason is a full clause that says what was found.
	Reason string
}

// DamageKind says in which way a stream is damaged.
type DamageKind string

const (
	// Gap: revisions are missing, repeated or out of order.
	Gap DamageKind = "gap"
	// Truncated: events are missing from the start of the stream.
	Truncated DamageKind = "truncated"
)

func (d *Damaged) Error() string {
	return fmt.Sprintf("eventlog: stream %q is damaged: %s", d.Stream, d.Reason)
}

// Invalid is returned by Append for an append that no engine may take: over a limit,
// without events, with an empty id or type, or with a bad stream name. Nothing was
// written, and trying again will not help.
type Invalid struct {
	// Reason is a full clause that says what is wrong and where.
	Reason string
}

func (i *Invalid) Error() string { return "eventlog: invalid append: " + i.Reason }
