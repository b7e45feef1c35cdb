package transfer

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
)

// TestResume cuts a copy off after every so many appends, and goes on with it: in the end
// both logs are the same, on engines of either kind.
func TestResume(t *testing.T) {
	for name, target := range map[string]func() eventlog.Log{
		"memory":  func() eventlog.Log { return memory.New() },
		"cluster": func() eventlog.Log { return onCluster(t) },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := filled(t), target()
			cut := errors.New("cut off")
			for n, tries := int64(1), 0; ; tries++ {
				var left atomic.Int64
				left.Store(n)
				r, err := copyOf(t, from, &limited{Log: to, err: cut, refuses: func([]eventlog.StreamAppend) bool { return left.Add(-1) < 0 }}, true)
				if n += 40; err == nil {
					if !r.CutOver || tries < 2 {
						t.Errorf("%+v after %d tries", r, tries)
					}
					break
				}
				if !errors.Is(err, cut) {
					t.Fatal(err)
				}
			}
			equal(t, from, to)
		})
	}
}

// TestResumeFromWhereItWas: what is known to be in the target is not appended again, unless
// the target has lost it.
func TestResumeFromWhereItWas(t *testing.T) {
	from, to := filled(t), memory.New()
	all := copied(t, from, to, false)
	if again := copied(t, from, to, false); again.Appended != 0 || again.Events != all.Events {
		t.Errorf("the second copy wrote: %+v", again)
	}
	if err := live(t.Context(), ledger(t, from), "more"); err != nil {
		t.Fatal(err)
	}
	if more := copied(t, from, to, false); more.Appended != 22 || more.Events != all.Events+22 {
		t.Errorf("%+v, and before %+v; want 22 events more", more, all)
	}
	for stream, events := range contents(t, from) {
		if n := len(events); n > 1 {
			to.Remove(stream, uint64(n-1))
			break
		}
	}
	// Where positions are dense, that shows. A cluster that lost the end of its log may have
	// lost what it had taken note of.
	var unsound *Unsound
	if _, err := copyOf(t, from, to, true); !errors.As(err, &unsound) || !unsound.Target {
		t.Errorf("got %v, want that the target is damaged", err)
	}
	if r := copied(t, from, struct{ eventlog.Log }{to}, true); !r.CutOver {
		t.Errorf("%+v", r)
	}
	equal(t, from, to)
}

// TestPutRest: a target that has a part of what is appended together gets the rest; one
// that has another event, or not those before it, is named.
func TestPutRest(t *testing.T) {
	event := func() eventlog.Event { return eventlog.Event{ID: uuid.New(), Type: "Tested"} }
	all := []eventlog.Event{event(), event(), event(), event()}
	for _, tt := range []struct {
		name  string
		has   []eventlog.Event
		at    uint64 // of what is put
		wants string
	}{
		{"nothing", nil, 0, ""},
		{"a part", all[:2], 0, ""},
		{"a part, and it begins within", all[:3], 1, ""},
		{"all", all, 0, ""},
		{"another event", []eventlog.Event{all[0], event()}, 0, "revision 1: the target has another event"},
		{"not what comes before", all[:1], 2, "revision 1: the target does not have the event"},
	} {
		for name, log := range map[string]eventlog.Log{"memory": memory.New(), "cluster": onCluster(t)} {
			if len(tt.has) > 0 {
				if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: "s", Events: tt.has}); err != nil {
					t.Fatal(err)
				}
			}
			var lane []eventlog.Recorded
			for i := tt.at; i < 4; i++ {
				lane = append(lane, eventlog.Recorded{Event: all[i], Stream: "s", Revision: i})
			}
			to := &target{log: log, pause: atOnce(Options{}).Pause}
			err := to.putLane(t.Context(), lane)
			if (err == nil) != (tt.wants == "") || err != nil && !strings.Contains(err.Error(), tt.wants) {
				t.Errorf("%s, %s: got %v, want %q", tt.name, name, err, tt.wants)
			}
			if got := contents(t, log)["s"]; err == nil && len(got) != 4 {
				t.Errorf("%s, %s: it has %d events", tt.name, name, len(got))
			}
		}
	}
}

// TestUnknownResults: an append whose result is lost is made again, byte for byte.
func TestUnknownResults(t *testing.T) {
	from, to := filled(t), memory.New()
	var n atomic.Int64
	target := &forgetful{Log: to, forgets: func() bool { return n.Add(1)%3 == 0 }}
	if r, err := copyOf(t, from, target, true); err != nil || !r.CutOver {
		t.Fatalf("%+v, %v", r, err)
	}
	equal(t, from, to)
}

// TestLanes: whatever points at what, the appends of a window have every event once, those
// of a stream in order, and those of streams that point at each other in the window's order.
func TestLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		next := map[string]uint64{}
		place := map[uuid.UUID]int{} // in the window
		linked := map[string]string{}
		for i := range rapid.IntRange(0, 60).Draw(t, "events") {
			id := events.WithdrawalID(fmt.Sprintf("w%d", rapid.IntRange(0, 5).Draw(t, "withdrawal")))
			r := eventlog.Recorded{Stream: id.Stream(), Event: eventlog.Event{ID: uuid.New(), Type: "T", Data: make([]byte, rapid.SampledFrom([]int{1, 600_000}).Draw(t, "bytes"))}}
			if rapid.Bool().Draw(t, "of a key") {
				r.Stream = fmt.Sprintf("requestkey-%d", rapid.IntRange(0, 5).Draw(t, "key"))
				r.Type, r.Data = events.KeyReserved{}.Type(), []byte(`{"withdrawal":"`+string(id)+`"}`)
				linked[r.Stream+"→"+id.Stream()] = r.Stream
			}
			r.Revision = next[r.Stream]
			next[r.Stream]++
			place[r.ID] = i
			w.add(r)
		}
		lanes, seen := map[string]int{}, 0
		for n, lane := range w.lanes() {
			last := -1
			for _, call := range calls(lane) {
				if err := eventlog.Validate(call); err != nil {
					t.Fatal(err)
				}
				for _, a := range call {
					for i, e := range a.Events {
						if place[e.ID] <= last {
							t.Fatalf("the order of the window is not kept within a lane")
						}
						last = place[e.ID]
						if r := w.events[last]; r.Stream != a.Stream || r.Revision != a.At+uint64(i) {
							t.Fatalf("revision %d of %s is put at %d of %s", r.Revision, r.Stream, a.At+uint64(i), a.Stream)
						}
						if was, ok := lanes[a.Stream]; ok && was != n {
							t.Fatalf("%s is in two lanes", a.Stream)
						}
						lanes[a.Stream] = n
						seen++
					}
				}
			}
		}
		if seen != len(w.events) {
			t.Fatalf("%d events of %d", seen, len(w.events))
		}
		for link, key := range linked {
			_, withdrawal, _ := strings.Cut(link, "→")
			if n, ok := lanes[withdrawal]; ok && n != lanes[key] {
				t.Fatalf("%s and %s are in different lanes", key, withdrawal)
			}
		}
	})
}
