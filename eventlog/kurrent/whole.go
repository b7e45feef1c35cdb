package kurrent

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// remembered is how many streams are known to be whole at one time. It bounds memory.
const remembered = 8192

// whole remembers which streams were seen whole a short while ago, so that an append
// right after a reading need not look again.
type whole struct {
	streams *lru.Cache[string, seen]
	trust   time.Duration
	clock   func() time.Time
}

// seen says that a stream was seen to have its events from 0 on, and when.
type seen struct {
	events uint64
	at     time.Time
}

func newWhole(trust time.Duration, clock func() time.Time) *whole {
	streams, err := lru.New[string, seen](remembered)
	if err != nil {
		panic("kurrent: a cache of constant size: " + err.Error())
	}
	return &whole{streams: streams, trust: trust, clock: clock}
}

// saw notes that a stream had that many events from revision 0 on when it was read, which
// was not before at.
func (w *whole) saw(stream string, events uint64, at time.Time) {
	w.streams.Add(stream, seen{events: events, at: at})
}

// grew notes that an append at the head of a stream went through. That says nothing of
// the events before it: the server appends to a stream whose start was taken away.
func (w *whole) grew(stream string, from, to uint64) {
	if s, ok := w.streams.Get(stream); ok && s.events == from {
		w.streams.Add(stream, seen{events: to, at: s.at})
	}
}

// holds reports whether a stream was seen, not long ago, to have at least that many
// events from revision 0 on.
func (w *whole) holds(stream string, events uint64) bool {
	s, ok := w.streams.Get(stream)
	return ok && s.events >= events && w.clock().Sub(s.at) < w.trust
}

func (w *whole) forget(stream string) { w.streams.Remove(stream) }
