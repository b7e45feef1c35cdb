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

	// ErrUnavailable is returned by reads when the engine cannot be read now, and it
	// is in the [*OpenError] of a log that cannot be reached now: it is locked, the
	// disk is full or does not answer. The same may work later.
	ErrUnavailable = errors.New("eventlog: the log cannot be reached")

	// ErrReadOnly is returned by Append on a log that was opened for reading only.
	// Nothing was written, and trying again will not help.
	ErrReadOnly = errors.New("eventlog: the log was opened for reading only")

	// ErrForbidden is returned when the log's server does not take the credentials, or
	// does not allow the user what was asked; and it is in the [*OpenError] of a file that
	// the user's rights do not open. Nothing was written, and trying again will
	// not help before that has changed.
	ErrForbidden = errors.New("eventlog: the user is not allowed to do this on the log")

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
// does not start at revision 0, or revisions are missing (SPEC D5); or when what the
// engine finds where the stream is stored is not what it wrote. Nothing was written,
// and trying again will not help.
type Damaged struct {
	// Stream is the stream's name, or WholeLog.
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
	// Truncated: events are missing from the start of the stream, or all of them are;
	// on WholeLog, events are missing from the end.
	Truncated DamageKind = "truncated"
	// Altered: what is stored is not what the engine wrote, or its place does not take
	// what the engine writes.
	Altered DamageKind = "content-changed"
)

// Missing returns the damage of a stream that has events, but not the one at a revision.
func Missing(stream string, revision uint64) *Damaged {
	if revision == 0 {
		return &Damaged{Stream: stream, Kind: Truncated, Reason: "revision 0 is missing"}
	}
	return &Damaged{Stream: stream, Kind: Gap, Reason: fmt.Sprintf("revision %d is missing", revision)}
}

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
