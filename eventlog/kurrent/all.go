package kurrent

import (
	"context"
	"iter"
	"math"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
)

// streamOf returns the name of an event's stream, and whether the event is one of this
// log's: the server's own events, which begin with a dollar sign, are not, nor are those of
// streams without the prefix.
func (l *Log) streamOf(e *esdb.RecordedEvent) (string, bool) {
	stream, ours := strings.CutPrefix(e.StreamID, l.prefix)
	return stream, ours && !strings.HasPrefix(e.EventType, "$") && eventlog.ValidateStream(stream) == nil
}

// recorded returns an event of this log as the port has it.
//
// A position is the server's commit position: where the event begins in the server's log,
// in bytes. Those grow, and each event of one append has its own.
func (l *Log) recorded(seals *sealer, e *esdb.RecordedEvent) eventlog.Recorded {
	return eventlog.Recorded{
		Event: eventlog.Event{
			ID:   seals.seal(e.EventID, e.EventType, e.Data, e.UserMetadata),
			Type: e.EventType, Data: e.Data, Metadata: e.UserMetadata,
		},
		Stream: e.StreamID[len(l.prefix):], Revision: e.EventNumber, Position: eventlog.Position(e.Position.Commit),
	}
}

// start is where the server is to begin for what comes after a position. It includes that
// position in a reading, and leaves it out of a subscription; what comes of it twice is
// left out here.
func start(after eventlog.Position) esdb.AllPosition {
	if after == eventlog.Start {
		return esdb.Start{}
	}
	return esdb.Position{Commit: uint64(after), Prepare: uint64(after)}
}

// ReadAll implements [eventlog.Log]. It reads page by page from the leader, one page ahead
// of its consumer, which needs the right to read "$all".
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		asking, cancel := context.WithCancel(ctx)
		defer cancel()
		after, seals := after, newSealer()
		for pages := l.ahead(asking, after, start(after)); pages != nil; {
			next := <-pages
			if next.err != nil {
				yield(eventlog.Recorded{}, next.err)
				return
			}
			if pages = nil; next.more {
				pages = l.ahead(asking, after, next.last)
			}
			for _, e := range next.events {
				if position := eventlog.Position(e.Position.Commit); position > after {
					after = position
				} else {
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
		}
	}
}

// fetched is a page, or why there is none.
type fetched struct {
	page
	err error
}

// ahead reads a page of the whole log while its consumer does something else.
func (l *Log) ahead(ctx context.Context, after eventlog.Position, from esdb.AllPosition) <-chan fetched {
	pages := make(chan fetched, 1)
	l.workers.do(func() {
		p, err := l.allPage(ctx, after, from, esdb.Forwards, pageEvents)
		pages <- fetched{p, err}
	})
	return pages
}

// Head implements [eventlog.Headed]: it reads backwards until it finds an event of this
// log, in pages that grow, because others may have written much since.
func (l *Log) Head(ctx context.Context) (eventlog.Position, error) {
	var from esdb.AllPosition = esdb.End{}
	for count := uint64(short); ; count = min(4*count, pageEvents) {
		p, err := l.allPage(ctx, eventlog.Start, from, esdb.Backwards, count)
		if err != nil {
			return eventlog.Start, err
		}
		if len(p.events) > 0 {
			return eventlog.Position(p.events[0].Position.Commit), nil
		}
		if !p.more {
			return eventlog.Start, nil
		}
		from = p.last
	}
}

func (l *Log) allPage(ctx context.Context, after eventlog.Position, from esdb.AllPosition, direction esdb.Direction, count uint64) (page, error) {
	if err := context.Cause(ctx); err != nil {
		return page{}, err
	}
	if err := l.begin(); err != nil {
		return page{}, err
	}
	defer l.running.Done()
	if after >= math.MaxInt64 {
		return page{}, nil // the server's positions are below, and it takes no such number
	}
	return patiently(ctx, l, `reading "$all"`, func(ctx context.Context, c *client) (page, error) {
		p, err := readAll(ctx, c, l, from, direction, count)
		if err != nil && after != eventlog.Start && isOddPlace(err) && l.isAtEnd(ctx, c, after) {
			return page{}, nil
		}
		return p, err
	})
}

// readAll makes one request for events of the whole log.
func readAll(ctx context.Context, c *client, l *Log, from esdb.AllPosition, direction esdb.Direction, count uint64) (page, error) {
	reading, err := c.ReadAll(ctx, esdb.ReadAllOptions{Direction: direction, From: from, RequiresLeader: true}, count)
	if err != nil {
		return page{}, err
	}
	return receive(reading, l, count)
}

// isOddPlace reports whether an error may be the server's answer to a position at which no
// event begins. It reads whatever is there for the length of a record, so that the answer
// is one or the other.
func isOddPlace(err error) bool {
	s, ok := status.FromError(err)
	return ok && (s.Code() == codes.InvalidArgument || s.Code() == codes.Unknown)
}

// isAtEnd reports whether this log has no event after a position.
func (l *Log) isAtEnd(ctx context.Context, c *client, after eventlog.Position) bool {
	var from esdb.AllPosition = esdb.End{}
	for {
		p, err := readAll(ctx, c, l, from, esdb.Backwards, pageEvents)
		switch {
		case err != nil:
			return false
		case len(p.events) > 0:
			return eventlog.Position(p.events[0].Position.Commit) <= after
		case !p.more || eventlog.Position(p.last.Commit) <= after:
			return true
		}
		from = p.last
	}
}
