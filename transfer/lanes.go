package transfer

import (
	"encoding/json"

	"holdfast/eventlog"
	"holdfast/events"
)

// How much of the source is appended at a time. All of a window is in the target before
// anything of the next one is, so that an event is never further from its place than that.
const (
	windowEvents = 4096
	windowBytes  = 8 << 20
)

// window is a stretch of the source, in its order.
type window struct {
	events []eventlog.Recorded
	bytes  int
}

func (w *window) add(r eventlog.Recorded) {
	w.events = append(w.events, r)
	w.bytes += sizeOf(&r.Event)
}

func (w *window) full() bool { return len(w.events) >= windowEvents || w.bytes >= windowBytes }

func sizeOf(e *eventlog.Event) int { return len(e.Type) + len(e.Data) + len(e.Metadata) }

// lanes splits a window so that the events of a stream, and those of streams that point at
// each other, are in one lane, in their order. What is in different lanes has nothing to do
// with each other, so lanes may be appended at the same time: a key's reservation is there
// before the claim that it was made for.
func (w *window) lanes() [][]eventlog.Recorded {
	leads := map[string]string{} // a stream, and one that it is in a lane with
	find := func(stream string) string {
		for leads[stream] != "" {
			if next := leads[leads[stream]]; next != "" {
				leads[stream] = next
			}
			stream = leads[stream]
		}
		return stream
	}
	for i := range w.events {
		r := &w.events[i]
		if other := pointsAt(r); other != "" {
			if a, b := find(r.Stream), find(other); a != b {
				leads[a] = b
			}
		}
	}
	var all [][]eventlog.Recorded
	places := map[string]int{}
	for _, r := range w.events {
		lead := find(r.Stream)
		at, known := places[lead]
		if !known {
			at = len(all)
			places[lead] = at
			all = append(all, nil)
		}
		all[at] = append(all[at], r)
	}
	return all
}

// pointsAt returns the stream that an event points at, and "" for one that points at none.
func pointsAt(r *eventlog.Recorded) string {
	if r.Type != (events.KeyReserved{}).Type() {
		return ""
	}
	var e struct {
		Withdrawal events.WithdrawalID `json:"withdrawal"`
	}
	if json.Unmarshal(r.Data, &e) != nil || e.Withdrawal == "" {
		return ""
	}
	return e.Withdrawal.Stream()
}

// calls returns the appends of a lane, for one call of the log each. Together they are the
// lane in its order: events that follow each other in a stream are one append, and a call
// has as many of those as it may.
func calls(lane []eventlog.Recorded) [][]eventlog.StreamAppend {
	var all [][]eventlog.StreamAppend
	var call []eventlog.StreamAppend
	size := 0
	has := func(stream string) bool {
		for i := range call {
			if call[i].Stream == stream {
				return true
			}
		}
		return false
	}
	for _, r := range lane {
		last := len(call) - 1
		if last >= 0 && call[last].Stream == r.Stream && len(call[last].Events) < eventlog.MaxAppendEvents && size+sizeOf(&r.Event) <= eventlog.MaxAppendBytes {
			call[last].Events = append(call[last].Events, r.Event)
			size += sizeOf(&r.Event)
			continue
		}
		if len(call) == eventlog.MaxAppends || has(r.Stream) {
			all, call = append(all, call), nil
		}
		call = append(call, eventlog.StreamAppend{Stream: r.Stream, At: r.Revision, Events: []eventlog.Event{r.Event}})
		size = sizeOf(&r.Event)
	}
	return append(all, call)
}
