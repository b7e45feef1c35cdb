package kurrent

import (
	"context"
	"iter"
	"math"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

// recorded returns an event as the port has it, and whether it is one of this log's: the
// server's own events, which begin with a dollar sign, are not, nor are those of streams
// without the prefix.
//
// A position is the server's commit position: where the event begins in the server's log,
// in bytes. Those grow, and each event of one append has its own.
func (l *Log) recorded(seals *sealer, e *esdb.RecordedEvent) (eventlog.Recorded, bool) {
	stream, ours := strings.CutPrefix(e.StreamID, l.prefix)
	if !ours || strings.HasPrefix(e.StreamID, "$") || strings.HasPrefix(e.EventType, "$") || eventlog.ValidateStream(stream) != nil {
		return eventlog.Recorded{}, false
	}
	return eventlog.Recorded{
		Event: eventlog.Event{
			ID:   seals.seal(e.EventID, e.EventType, e.Data, e.UserMetadata),
			Type: e.EventType, Data: e.Data, Metadata: e.UserMetadata,
		},
		Stream: stream, Revision: e.EventNumber, Position: eventlog.Position(e.Position.Commit),
	}, true
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

// ReadAll implements [eventlog.Log]. It reads page by page from the leader, which needs
// the right to read "$all".
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		from := start(after)
		for more := true; more; {
			p, err := l.allPage(ctx, after, from, esdb.Forwards, pageEvents)
			if err != nil {
				yield(eventlog.Recorded{}, err)
				return
			}
			for i := range p.events {
				if p.events[i].Position <= after {
					continue
				}
				if err := context.Cause(ctx); err != nil {
					yield(eventlog.Recorded{}, err)
					return
				}
				if after = p.events[i].Position; !yield(p.events[i], nil) {
					return
				}
			}
			from, more = p.last, p.more
		}
	}
}

// Head implements [eventlog.Headed]: it reads backwards until it finds an event of this
// log.
func (l *Log) Head(ctx context.Context) (eventlog.Position, error) {
	var from esdb.AllPosition = esdb.End{}
	for {
		p, err := l.allPage(ctx, eventlog.Start, from, esdb.Backwards, short)
		if err != nil {
			return eventlog.Start, err
		}
		if len(p.events) > 0 {
			return p.events[0].Position, nil
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
		reading, err := c.ReadAll(ctx, esdb.ReadAllOptions{Direction: direction, From: from, RequiresLeader: true}, count)
		if err != nil {
			return page{}, err
		}
		return receive(reading, l, count)
	})
}
