package kurrent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

// Append implements [eventlog.Log]; several stream appends are applied one after another
// and stop at the first that fails. It returns [*eventlog.Invalid],
// [*eventlog.Conflict], [*eventlog.Damaged], [eventlog.ErrNotExecuted],
// [eventlog.ErrUnknownResult], [eventlog.ErrReadOnly], [eventlog.ErrClosed], and
// [*Refused] when the server does not allow it.
func (l *Log) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	if err := eventlog.Validate(appends); err != nil {
		return 0, err
	}
	if l.ReadOnly {
		return 0, eventlog.ErrReadOnly
	}
	if err := l.begin(); err != nil {
		return 0, err
	}
	defer l.running.Done()
	ctx, cancel := context.WithTimeoutCause(ctx, l.Patience, errPatience)
	defer cancel()
	var last eventlog.Position
	for i := range appends {
		position, err := l.append(ctx, &appends[i])
		if err != nil {
			return 0, err
		}
		last = position
	}
	return last, nil
}

// expected is the revision that an append states, as the client wants it. There is no
// other place where one is made, and none is left out: the client takes a missing one
// for "any".
func expected(at uint64) esdb.ExpectedRevision {
	if at == 0 {
		return esdb.NoStream{}
	}
	return esdb.Revision(at - 1)
}

// append applies one stream append. What is not known to have happened is tried again,
// byte for byte, until it is known or the time is up.
func (l *Log) append(ctx context.Context, a *eventlog.StreamAppend) (eventlog.Position, error) {
	if ctx.Err() != nil {
		return 0, because(eventlog.ErrNotExecuted, ctx, nil)
	}
	if a.At > 0 && !l.whole.holds(a.Stream, a.At) {
		if _, err := l.look(ctx, a.Stream); err != nil {
			return 0, lookFailed(ctx, err)
		}
	}
	proposed := propose(a.Events)
	outcome := eventlog.ErrNotExecuted // until some try may have been more than that
	taken := false                     // the stream was seen to have other events, or ours, before this try
	next := retry{pause: 10 * time.Millisecond, most: time.Second}
	for {
		result, err := request(ctx, l, func(ctx context.Context, c *client) (*esdb.WriteResult, error) {
			options := esdb.AppendToStreamOptions{ExpectedRevision: expected(a.At), Deadline: &l.CallTimeout, RequiresLeader: true}
			return c.AppendToStream(ctx, l.prefix+a.Stream, options, proposed...)
		})
		if err == nil {
			return l.accepted(a, result)
		}
		var notSent *errNotSent
		if !errors.As(err, &notSent) {
			switch classOf(err) {
			case conflict:
				err = l.conflicted(ctx, a)
				if taken || errors.Is(outcome, eventlog.ErrNotExecuted) || !isConflict(err) {
					return 0, err
				}
				if taken = isTaken(err); taken {
					continue
				}
			case tombstone:
				return 0, entombed(a.Stream)
			case refused:
				if errors.Is(outcome, eventlog.ErrUnknownResult) {
					return 0, because(outcome, ctx, err)
				}
				return 0, refusal("the append", err)
			case notExecuted:
			default:
				outcome = eventlog.ErrUnknownResult
			}
		}
		if ctx.Err() != nil || !next.wait(ctx, l) {
			if l.closing.Err() != nil {
				err = fmt.Errorf("%w: %w", eventlog.ErrClosed, err)
			}
			return 0, because(outcome, ctx, err)
		}
	}
}

// A conflict settles nothing while an earlier try may still come to something: that try may
// be on a node that has fallen behind, and that leads again once the leader that knew of the
// conflict is lost, with what it decided against. It is settled when the stream was seen to
// go beyond the stated revision, which most nodes have then and none can lose, and the
// append still conflicts.

// isConflict reports whether an error is a conflict.
func isConflict(err error) bool {
	var c *eventlog.Conflict
	return errors.As(err, &c)
}

// isTaken reports whether a conflict is with what can be read.
func isTaken(err error) bool {
	var c *eventlog.Conflict
	return errors.As(err, &c) && c.Actual != nil && *c.Actual > c.At
}

// lookFailed is the error of an append that was not made, because its stream could not be
// looked at or is damaged.
func lookFailed(ctx context.Context, err error) error {
	var damaged *eventlog.Damaged
	var r *Refused
	if errors.As(err, &damaged) || errors.As(err, &r) {
		return err
	}
	return because(eventlog.ErrNotExecuted, ctx, err)
}

// propose returns events as the server gets them. A retry sends these very values.
func propose(events []eventlog.Event) []esdb.EventData {
	proposed, seals := make([]esdb.EventData, len(events)), newSealer()
	for i := range events {
		e := &events[i]
		proposed[i] = esdb.EventData{EventID: seals.sealed(e), EventType: e.Type, Data: e.Data, Metadata: e.Metadata}
		if isObject(e.Data) && isObject(e.Metadata) {
			proposed[i].ContentType = esdb.ContentTypeJson
		}
	}
	return proposed
}

// isObject reports whether bytes look like a JSON object. The server shows such events to a
// person as JSON, and makes nothing else of it, so they are not parsed for that.
func isObject(b []byte) bool { return len(b) > 1 && b[0] == '{' && b[len(b)-1] == '}' }

// accepted checks what the server says it has done. It accepts an append to a stream that
// does not exist, also where the stream was deleted so that it can be written to again;
// it then goes on with the old numbers. And it takes the repetition of an append for done,
// also where its events cannot be read any more. Either way the stream is damaged (SPEC
// D5), and whoever reads it is told so.
func (l *Log) accepted(a *eventlog.StreamAppend, result *esdb.WriteResult) (eventlog.Position, error) {
	next := a.At + uint64(len(a.Events))
	switch {
	case result.NextExpectedVersion != next-1:
		l.whole.forget(a.Stream)
		return 0, &eventlog.Damaged{Stream: a.Stream, Kind: eventlog.Truncated, Reason: fmt.Sprintf(
			"what was to end at revision %d was written to end at revision %d, as happens after a deletion; it stays there, and nothing acts on it", next-1, result.NextExpectedVersion)}
	case result.CommitPosition == 0:
		l.whole.forget(a.Stream)
		return 0, &eventlog.Damaged{Stream: a.Stream, Kind: eventlog.Truncated, Reason: "the server knows these events and can no longer show them, as happens after a deletion"}
	}
	if a.At == 0 {
		l.whole.saw(a.Stream, next, l.Clock())
	} else {
		l.whole.grew(a.Stream, a.At, next)
	}
	return eventlog.Position(result.CommitPosition), nil
}

// conflicted finds out, by reading on the leader, what the stream has that an append did
// not expect. The server decides against writes that the other nodes do not have yet and
// nobody can read, and that may still be lost; so the stream may be read as if there were
// no conflict. It is then read again for a short while.
func (l *Log) conflicted(ctx context.Context, a *eventlog.StreamAppend) error {
	ctx, cancel := context.WithTimeout(ctx, l.Unseen)
	defer cancel()
	next := retry{pause: 5 * time.Millisecond, most: 200 * time.Millisecond}
	for {
		n, err := l.look(ctx, a.Stream)
		var damaged *eventlog.Damaged
		switch {
		case errors.As(err, &damaged):
			return damaged
		case err != nil:
			return &eventlog.Conflict{Stream: a.Stream, At: a.At}
		case n != a.At:
			return &eventlog.Conflict{Stream: a.Stream, At: a.At, Actual: &n}
		}
		if !next.wait(ctx, l) {
			return &eventlog.Conflict{Stream: a.Stream, At: a.At}
		}
	}
}
