package kurrent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

// look returns how many events a stream has, read on the leader, and makes sure that it
// begins where it must. It reads the first events, and the last one of a stream that has
// more. It returns [*eventlog.Damaged] and what reading returns.
func (l *Log) look(ctx context.Context, stream string) (uint64, error) {
	began := l.Clock()
	p, err := l.lookPage(ctx, stream, esdb.Forwards, short)
	if err != nil {
		return 0, l.notWhole(ctx, stream, err)
	}
	if len(p.events) == 0 {
		return 0, &eventlog.Damaged{Stream: stream, Kind: eventlog.Truncated, Reason: "it exists but has no events"}
	}
	for i, e := range p.events {
		if e.EventNumber != uint64(i) {
			l.whole.forget(stream)
			return 0, eventlog.Missing(stream, uint64(i))
		}
	}
	n := uint64(len(p.events))
	if p.more {
		if p, err = l.lookPage(ctx, stream, esdb.Backwards, 1); err != nil {
			return 0, l.notWhole(ctx, stream, err)
		}
		if len(p.events) == 1 {
			n = p.events[0].EventNumber + 1
		}
	}
	l.whole.saw(stream, n, began)
	return n, nil
}

func (l *Log) lookPage(ctx context.Context, stream string, direction esdb.Direction, count uint64) (page, error) {
	return patiently(ctx, l, "reading a stream", func(ctx context.Context, c *client) (page, error) {
		options := esdb.ReadStreamOptions{Direction: direction, From: esdb.Start{}, RequiresLeader: true}
		if direction == esdb.Backwards {
			options.From = esdb.End{}
		}
		reading, err := c.ReadStream(ctx, l.prefix+stream, options, count)
		if err != nil {
			return page{}, err
		}
		return receive(reading, l, count)
	})
}

// notWhole is what a reading that failed says of a stream: nil when there never was one.
func (l *Log) notWhole(ctx context.Context, stream string, err error) error {
	switch classOf(err) {
	case tombstone:
		return entombed(stream)
	case absent:
		return l.neverWas(ctx, stream)
	}
	return err
}

// neverWas makes sure that a stream that is not found was never there. The server gives
// the same answer for one that was deleted so that it can be written to again; but such a
// stream has metadata that says from where on it counts.
func (l *Log) neverWas(ctx context.Context, stream string) error {
	meta, err := l.limitsOf(ctx, l.prefix+stream)
	if err != nil {
		return err
	}
	if !meta.truncates() {
		return nil
	}
	l.whole.forget(stream)
	return &eventlog.Damaged{Stream: stream, Kind: eventlog.Truncated, Reason: fmt.Sprintf(
		"it was deleted: its metadata says that it begins at revision %s", *meta.TruncateBefore)}
}

// limits is what a stream's metadata says that could take events away from it.
type limits struct {
	TruncateBefore *json.Number    `json:"$tb"`
	MaxCount       *json.Number    `json:"$maxCount"`
	MaxAge         *json.Number    `json:"$maxAge"`
	ACL            json.RawMessage `json:"$acl"`
}

// truncates reports whether a stream is to begin later than at revision 0.
func (m limits) truncates() bool { return m.TruncateBefore != nil && *m.TruncateBefore != "0" }

// limitsOf reads a stream's metadata, by the name that the stream has on the server;
// nothing when it has none.
func (l *Log) limitsOf(ctx context.Context, full string) (limits, error) {
	data, err := l.lastOf(ctx, metaPrefix+full)
	if err != nil || data == nil {
		return limits{}, err
	}
	var m limits
	if err := json.Unmarshal(data, &m); err != nil {
		return limits{}, &eventlog.Damaged{Stream: strings.TrimPrefix(full, l.prefix), Kind: eventlog.Altered, Reason: "its metadata is not JSON: " + err.Error()}
	}
	return m, nil
}

// metaPrefix is what the name of a stream's metadata stream begins with.
const metaPrefix = "$$"

// lastOf returns what the last event of one of the server's own streams holds; nil when
// there is no such stream.
func (l *Log) lastOf(ctx context.Context, full string) ([]byte, error) {
	data, err := patiently(ctx, l, fmt.Sprintf("reading %q", full), func(ctx context.Context, c *client) ([]byte, error) {
		options := esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.End{}, RequiresLeader: true}
		reading, err := c.ReadStream(ctx, full, options, 1)
		if err != nil {
			return nil, err
		}
		defer reading.Close()
		resolved, err := reading.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return resolved.OriginalEvent().Data, nil
	})
	if err != nil && classOf(err) == absent {
		return nil, nil
	}
	return data, err
}

// entombed is the damage of a stream that was deleted for good.
func entombed(stream string) *eventlog.Damaged {
	return &eventlog.Damaged{Stream: stream, Kind: eventlog.Truncated, Reason: "it was deleted for good"}
}
