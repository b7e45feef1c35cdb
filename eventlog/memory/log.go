package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sort"
	"sync"

	"holdfast/eventlog"
)

// Log is an event log in memory. Use New to make one.
type Log struct {
	mu      sync.Mutex
	all     []eventlog.Recorded
	streams map[string][]eventlog.Recorded
	closed  bool
	// changed is closed and replaced at every commit, and closed for good by Close.
	changed chan struct{}
}

var (
	_ eventlog.Dense  = (*Log)(nil)
	_ eventlog.Headed = (*Log)(nil)
)

// New returns an empty log.
func New() *Log {
	return &Log{streams: make(map[string][]eventlog.Recorded), changed: make(chan struct{})}
}

// Append implements [eventlog.Log]; all stream appends are applied or none. It
// returns [*eventlog.Invalid], [*eventlog.Conflict], [*eventlog.Damaged],
// [eventlog.ErrNotExecuted] when the context had ended before the call, and
// [eventlog.ErrClosed].
func (l *Log) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	if err := eventlog.Validate(appends); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("%w: %w", eventlog.ErrNotExecuted, context.Cause(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, eventlog.ErrClosed
	}
	repeats := make([]bool, len(appends))
	for i := range appends {
		repeat, err := l.check(&appends[i])
		if err != nil {
			return 0, err
		}
		repeats[i] = repeat
	}
	written := false
	var last eventlog.Position
	for i := range appends {
		a := &appends[i]
		if repeats[i] {
			last = l.streams[a.Stream][a.At+uint64(len(a.Events))-1].Position
			continue
		}
		last = l.write(a)
		written = true
	}
	if written {
		close(l.changed)
		l.changed = make(chan struct{})
	}
	return last, nil
}

// check decides one stream append: nil when it may be written, repeat when it is in
// the log already.
func (l *Log) check(a *eventlog.StreamAppend) (repeat bool, err error) {
	stream, exists := l.streams[a.Stream]
	if err := contiguous(a.Stream, stream, exists); err != nil {
		return false, err
	}
	head := uint64(len(stream))
	if head == a.At {
		return false, nil
	}
	if a.At+uint64(len(a.Events)) <= head && same(a.Events, stream[a.At:]) {
		return true, nil
	}
	return false, &eventlog.Conflict{Stream: a.Stream, At: a.At, Actual: &head}
}

func (l *Log) write(a *eventlog.StreamAppend) eventlog.Position {
	next := eventlog.Start + 1
	if n := len(l.all); n > 0 { // its length would not do once Remove was called
		next = l.all[n-1].Position + 1
	}
	for i := range a.Events {
		recorded := eventlog.Recorded{
			Event:    a.Events[i],
			Stream:   a.Stream,
			Revision: a.At + uint64(i),
			Position: next + eventlog.Position(i),
		}
		recorded.Data = bytes.Clone(recorded.Data)
		recorded.Metadata = bytes.Clone(recorded.Metadata)
		l.all = append(l.all, recorded)
		l.streams[a.Stream] = append(l.streams[a.Stream], recorded)
	}
	return next + eventlog.Position(len(a.Events)) - 1
}

// same reports whether the events are byte for byte the first of the recorded ones.
func same(events []eventlog.Event, recorded []eventlog.Recorded) bool {
	for i := range events {
		e, r := &events[i], &recorded[i]
		if e.ID != r.ID || e.Type != r.Type || !bytes.Equal(e.Data, r.Data) || !bytes.Equal(e.Metadata, r.Metadata) {
			return false
		}
	}
	return true
}

// contiguous returns [*eventlog.Damaged] unless the revisions of a stream that exists
// count up from 0 (SPEC D5).
func contiguous(stream string, events []eventlog.Recorded, exists bool) error {
	if exists && len(events) == 0 {
		return &eventlog.Damaged{Stream: stream, Kind: eventlog.Truncated, Reason: "it exists but has no events"}
	}
	for i := range events {
		if events[i].Revision != uint64(i) {
			return eventlog.Missing(stream, uint64(i))
		}
	}
	return nil
}

// ReadStream implements [eventlog.Log]. It yields the stream as it was when the
// reading started.
func (l *Log) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		events, err := l.stream(ctx, stream)
		if err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		if from >= uint64(len(events)) {
			return
		}
		for _, event := range events[from:] {
			if ctx.Err() != nil {
				yield(eventlog.Recorded{}, context.Cause(ctx))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

func (l *Log) stream(ctx context.Context, stream string) ([]eventlog.Recorded, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, eventlog.ErrClosed
	}
	events, exists := l.streams[stream]
	return events, contiguous(stream, events, exists)
}

// ReadAll implements [eventlog.Log].
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return l.read(ctx, after, false)
}

// Follow implements [eventlog.Log]. It is woken by commits and never polls.
func (l *Log) Follow(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return l.read(ctx, after, true)
}

func (l *Log) read(ctx context.Context, after eventlog.Position, follow bool) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		after := after
		for {
			events, changed, err := l.beyond(ctx, after)
			if err != nil {
				yield(eventlog.Recorded{}, err)
				return
			}
			for i := range events {
				if ctx.Err() != nil {
					yield(eventlog.Recorded{}, context.Cause(ctx))
					return
				}
				if !yield(events[i], nil) {
					return
				}
				after = events[i].Position
			}
			switch {
			case len(events) > 0:
			case !follow:
				return
			default:
				select {
				case <-changed:
				case <-ctx.Done():
				}
			}
		}
	}
}

// beyond returns the events after a position, and a channel that is closed once
// there may be more.
func (l *Log) beyond(ctx context.Context, after eventlog.Position) ([]eventlog.Recorded, <-chan struct{}, error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, eventlog.ErrClosed
	}
	at := sort.Search(len(l.all), func(i int) bool { return l.all[i].Position > after })
	return l.all[at:], l.changed, nil
}

// DensePositions implements [eventlog.Dense]: positions count up from 1.
func (l *Log) DensePositions() {}

// Head implements [eventlog.Headed].
func (l *Log) Head(ctx context.Context) (eventlog.Position, error) {
	if ctx.Err() != nil {
		return eventlog.Start, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return eventlog.Start, eventlog.ErrClosed
	case len(l.all) == 0:
		return eventlog.Start, nil
	default:
		return l.all[len(l.all)-1].Position, nil
	}
}

// Remove takes one event out of the log, as no append-only log ever does, so that
// tests can see what a damaged log leads to. It does nothing if there is no such event.
func (l *Log) Remove(stream string, revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams[stream] = without(l.streams[stream], func(r eventlog.Recorded) bool { return r.Revision == revision })
	l.all = without(l.all, func(r eventlog.Recorded) bool { return r.Stream == stream && r.Revision == revision })
}

// without copies, because readers share the slice that it is given.
func without(events []eventlog.Recorded, gone func(eventlog.Recorded) bool) []eventlog.Recorded {
	kept := make([]eventlog.Recorded, 0, len(events))
	for _, event := range events {
		if !gone(event) {
			kept = append(kept, event)
		}
	}
	return kept
}

// Close implements [eventlog.Log]. It always returns nil.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.changed)
	}
	return nil
}
