package kurrent

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

const (
	// pageEvents and pageBytes are the most that is read in one request.
	pageEvents = 4096
	pageBytes  = 4 << 20

	// short is the length up to which a stream is always read from its start, which
	// shows that the start is there without a request of its own.
	short = 64
)

// page is what one request read: the events of this log, in the client's form.
type page struct {
	events []*esdb.RecordedEvent
	// last is the position of the last event that the server sent, ours or not.
	last esdb.Position
	// more says that there may be more.
	more bool
}

// ReadStream implements [eventlog.Log]. It reads page by page from the leader.
func (l *Log) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		if eventlog.ValidateStream(stream) != nil {
			if err := l.ended(ctx); err != nil {
				yield(eventlog.Recorded{}, err)
			}
			return // there can be no such stream
		}
		began, seals := l.Clock(), newSealer()
		at := uint64(0)
		if from > short {
			whole, err := l.firstOf(ctx, stream)
			if err != nil {
				yield(eventlog.Recorded{}, err)
				return
			}
			if !whole || from >= math.MaxInt64 { // the server has no such revision
				return
			}
			at = from
		}
		for more := true; more; {
			p, err := l.streamPage(ctx, stream, at, pageEvents)
			for _, e := range p.events {
				if e.EventNumber != at {
					err = eventlog.Missing(stream, at)
					break
				}
				if at++; at <= from {
					continue
				}
				if err := context.Cause(ctx); err != nil {
					yield(eventlog.Recorded{}, err)
					return
				}
				if !yield(l.recorded(seals, e), nil) {
					return
				}
			}
			if err != nil {
				l.whole.forget(stream)
				yield(eventlog.Recorded{}, err)
				return
			}
			more = p.more
		}
		l.whole.saw(stream, at, began)
	}
}

// firstOf reports whether a stream has an event 0. It returns [*eventlog.Damaged] when it
// has others only.
func (l *Log) firstOf(ctx context.Context, stream string) (bool, error) {
	p, err := l.streamPage(ctx, stream, 0, 1)
	if err != nil || len(p.events) == 0 {
		return false, err
	}
	if p.events[0].EventNumber != 0 {
		return false, eventlog.Missing(stream, 0)
	}
	return true, nil
}

// ended returns the error of a call on a log that is closed, or in a context that is over.
func (l *Log) ended(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if l.closing.Err() != nil {
		return eventlog.ErrClosed
	}
	return nil
}

// streamPage reads events of a stream from a revision on; none when there is no such
// stream. It returns [*eventlog.Damaged] for a stream of which nothing is left.
func (l *Log) streamPage(ctx context.Context, stream string, from, count uint64) (page, error) {
	if err := context.Cause(ctx); err != nil {
		return page{}, err
	}
	if err := l.begin(); err != nil {
		return page{}, err
	}
	defer l.running.Done()
	p, err := patiently(ctx, l, "reading a stream", func(ctx context.Context, c *client) (page, error) {
		return readStream(ctx, c, l, stream, from, count)
	})
	switch {
	case err != nil && classOf(err) == tombstone:
		return page{}, entombed(stream)
	case err != nil && classOf(err) == absent:
		return page{}, l.neverWas(ctx, stream)
	case err == nil && len(p.events) == 0 && from == 0:
		return page{}, &eventlog.Damaged{Stream: stream, Kind: eventlog.Truncated, Reason: "it exists but has no events"}
	}
	return p, err
}

// readStream makes one request for events of a stream.
func readStream(ctx context.Context, c *client, l *Log, stream string, from, count uint64) (page, error) {
	var start esdb.StreamPosition = esdb.Start{}
	if from > 0 {
		start = esdb.Revision(from)
	}
	options := esdb.ReadStreamOptions{Direction: esdb.Forwards, From: start, RequiresLeader: true}
	reading, err := c.ReadStream(ctx, l.prefix+stream, options, count)
	if err != nil {
		return page{}, err
	}
	return receive(reading, l, count)
}

// receive takes in what a request for events is answered with.
func receive(reading *esdb.ReadStream, l *Log, count uint64) (page, error) {
	defer reading.Close()
	var p page
	received, size := uint64(0), 0
	for {
		resolved, err := reading.Recv()
		switch {
		case errors.Is(err, io.EOF):
			p.more = received == count
			return p, nil
		case err != nil:
			return page{}, err
		}
		e := resolved.OriginalEvent()
		received++
		p.last = e.Position
		if _, ours := l.streamOf(e); ours {
			p.events = append(p.events, e)
			size += len(e.Data) + len(e.UserMetadata)
		}
		if size > pageBytes {
			p.more = true
			return p, nil
		}
	}
}
