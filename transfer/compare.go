package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"

	"holdfast/eventlog"
	"holdfast/events"
)

func sameEvent(a, b *eventlog.Event) bool {
	return a.ID == b.ID && a.Type == b.Type && bytes.Equal(a.Data, b.Data) && bytes.Equal(a.Metadata, b.Metadata)
}

// spot is where an event is in its log, in a way that holds in both.
type spot struct {
	stream   string
	revision uint64
}

type content [sha256.Size]byte

// contentOf is SHA-256 over what is stored of an event, each part preceded by its length.
func contentOf(e *eventlog.Event, scratch []byte) (content, []byte) {
	scratch = append(scratch[:0], e.ID[:]...)
	for _, part := range [][]byte{[]byte(e.Type), e.Data, e.Metadata} {
		scratch = append(binary.BigEndian.AppendUint64(scratch, uint64(len(part))), part...)
	}
	return sha256.Sum256(scratch), scratch
}

// compare reads both logs once, side by side, and returns how many events and streams they
// have. It returns [*Differs] for an event that is not the same in both, or is in one of
// them only. Its memory grows with how far events are from their place in the other log,
// which a copy keeps within a window.
func compare(ctx context.Context, source, target iter.Seq2[eventlog.Recorded, error], progress func(events uint64)) (counted, streams uint64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sides := [2]*side{newSide(source), newSide(target)}
	defer sides[0].stop()
	defer sides[1].stop()
	for !sides[0].over || !sides[1].over {
		for i, s := range sides {
			at, sum, err := s.read()
			if err != nil {
				return counted, streams, fmt.Errorf("the %s cannot be read: %w", [2]string{"source", "target"}[i], err)
			}
			if s.over {
				continue
			}
			other := sides[1-i]
			met, ok := other.unmatched[at]
			switch {
			case !ok:
				s.unmatched[at] = sum
				continue
			case met != sum:
				return counted, streams, &Differs{Stream: at.stream, Revision: at.revision, Reason: "the target has another event there than the source"}
			}
			delete(other.unmatched, at)
			counted++
			if at.revision == 0 {
				streams++
			}
			progress(counted)
		}
	}
	if at, ok := first(sides[0].unmatched); ok {
		return counted, streams, &missing{Differs{Stream: at.stream, Revision: at.revision, Reason: "the source has the event, and the target does not"}}
	}
	if at, ok := first(sides[1].unmatched); ok {
		return counted, streams, &Differs{Stream: at.stream, Revision: at.revision, Reason: "the target has the event, and the source does not"}
	}
	return counted, streams, ctx.Err()
}

// missing is the difference that copying once more makes good.
type missing struct{ Differs }

func (m *missing) Unwrap() error { return &m.Differs }

// side is one log that is compared.
type side struct {
	next      func() (eventlog.Recorded, error, bool)
	stop      func()
	over      bool
	unmatched map[spot]content
	scratch   []byte
}

func newSide(log iter.Seq2[eventlog.Recorded, error]) *side {
	s := &side{unmatched: map[spot]content{}}
	s.next, s.stop = iter.Pull2(log)
	return s
}

// read reads the next event.
func (s *side) read() (at spot, sum content, err error) {
	if s.over {
		return at, sum, nil
	}
	r, err, ok := s.next()
	if s.over = !ok; !ok || err != nil {
		return at, sum, err
	}
	sum, s.scratch = contentOf(&r.Event, s.scratch)
	return spot{r.Stream, r.Revision}, sum, nil
}

// first returns the event that comes first by name and revision.
func first(unmatched map[spot]content) (least spot, ok bool) {
	for at := range unmatched {
		if !ok || at.stream < least.stream || at.stream == least.stream && at.revision < least.revision {
			least, ok = at, true
		}
	}
	return least, ok
}

// history yields the events of a log that are copied: all but those of the custody stream,
// after a position and, where end is not 0, up to and with it.
func history(ctx context.Context, log eventlog.Log, after, end eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range log.ReadAll(ctx, after) {
			if err == nil && end != 0 && r.Position > end {
				return
			}
			if err == nil && r.Stream == events.CustodyStream {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
