package eventlog

import (
	"context"
	"iter"

	"github.com/google/uuid"
)

// Limits of the port. An append over one of them is an [*Invalid] error on every
// engine, so that a log can move from one engine to another.
const (
	// MaxStreamName is the longest stream name, in bytes.
	MaxStreamName = 256
	// MaxEventType is the longest event type, in bytes.
	MaxEventType = 128
	// MaxAppendBytes is the most that one stream append may carry: the sum of data,
	// metadata and type over its events. (KurrentDB up to 25.0 takes 1 MiB.)
	MaxAppendBytes = 1 << 20
	// MaxAppendEvents is the most events that one stream append may carry.
	MaxAppendEvents = 256
	// MaxAppends is the most stream appends that one call may carry.
	MaxAppends = 16
)

// Log is an append-only event log. It is safe for concurrent use.
type Log interface {
	// Append writes the events of each stream append, in order, and returns the
	// position of the last event once all of them are durable.
	//
	// Engines that can commit several streams together apply all appends or none;
	// others apply them in order and stop at the first that fails. It returns
	// [*Conflict] when a stream does not hold exactly StreamAppend.At events,
	// [*Invalid] for an append that no engine may take, [*Damaged] when the stream
	// is not what an append-only stream can be, [ErrNotExecuted] when nothing was
	// written and the same append may be tried again, [ErrUnknownResult] when the
	// events may or may not be in the log, [ErrReadOnly] when the log was opened for
	// reading only, and [ErrClosed].
	//
	// A stream append whose events are already in the log at those revisions, with
	// the same ids, types and bytes, is a retry: it succeeds, and writes nothing. The
	// same ids with anything else is a conflict.
	//
	// A cancelled context ends the wait, not the append: unless the append had not
	// been handed to the engine yet (ErrNotExecuted), its result is then unknown.
	// Both errors wrap the context's cause.
	//
	// The events' slices must not be modified once they have been handed over, not
	// even after Append has returned [ErrUnknownResult]: the engine may still be
	// reading them, and a retry needs the same bytes.
	Append(ctx context.Context, appends ...StreamAppend) (Position, error)

	// ReadStream yields the events of one stream in order, from revision from on.
	// A stream that does not exist yields nothing, and nor does one that has no
	// event at from yet. The sequence ends after its first error: [*Damaged] when
	// the stream does not start at revision 0 or revisions are missing,
	// [ErrUnavailable] when the engine cannot be read, [ErrClosed], or the
	// context's cause.
	//
	// No lock and no connection is held while the consumer has an event, so it may
	// call the log again or take its time. The slices of what is yielded may be
	// shared with other readers: they must not be modified.
	ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[Recorded, error]

	// ReadAll yields every event of the log after position after, in the order of
	// the log; Start yields all of them. It ends at the last event that was in the
	// log when the reading got there. Errors as for ReadStream, but damage to streams
	// does not end it: it yields what is there, so that a damaged log can still be
	// looked through. What is missing shows in the revisions, and in the positions of
	// a log that is [Dense].
	ReadAll(ctx context.Context, after Position) iter.Seq2[Recorded, error]

	// Follow is ReadAll that then waits for further events, without gap or repeat,
	// until the context ends or the consumer stops. Errors as for ReadStream.
	Follow(ctx context.Context, after Position) iter.Seq2[Recorded, error]

	// Close ends the use of the log. Calls under way are finished first; later ones
	// return [ErrClosed]. Closing twice is harmless.
	Close() error
}

// Position is a place in the order of the whole log. Positions grow; they need not
// be dense, and they mean nothing in another log.
type Position uint64

// WholeLog stands for the stream's name in a [*Damaged] that is about the log as a
// whole. It can be no stream's name, since those do not start with '$'.
const WholeLog = "$all"

// Start is the position before the first event.
const Start Position = 0

// Event is one event to be appended.
type Event struct {
	// ID is random and fresh for each append decision; only retries of that very
	// append reuse it. It is never derived from a key or a withdrawal id.
	ID uuid.UUID
	// Type is the name of the kind of event, as written in the log: 1 to MaxEventType
	// bytes of valid UTF-8 without control characters.
	Type string
	// Data and Metadata are stored and returned as they are, byte for byte; nil and
	// empty are the same.
	Data, Metadata []byte
}

// StreamAppend is the events to append to one stream, at a stated revision.
type StreamAppend struct {
	// Stream is the stream's name: 1 to MaxStreamName bytes of valid UTF-8 without
	// control characters, not starting with '$'. It is compared byte for byte.
	Stream string
	// At is the revision that the first of Events is to get. Revisions count from
	// 0, so it is also the number of events the stream must hold: 0 says that the
	// stream must not exist. There is no value that means "any".
	At uint64
	// Events has at least one event.
	Events []Event
}

// Recorded is one event as the log holds it.
type Recorded struct {
	Event
	// Stream and Revision say where in its stream the event is.
	Stream   string
	Revision uint64
	// Position says where in the whole log it is.
	Position Position
}
