package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/uuid"

	"holdfast/eventlog"
)

func readsBack(t *testing.T, h Harness) {
	log := h.open(t)
	wantStream(t, log, "withdrawal-w1")
	if all := mustReadAll(t, log, eventlog.Start); len(all) != 0 {
		t.Fatalf("a fresh log has %d events", len(all))
	}

	first, more := event("first"), events(2)
	p1 := mustAppend(t, log, to("withdrawal-w1", 0, first))
	p2 := mustAppend(t, log, to("withdrawal-w1", 1, more...))
	if p1 == eventlog.Start || p2 <= p1 {
		t.Errorf("positions %d and %d, want them to grow from above %d", p1, p2, eventlog.Start)
	}
	wantStream(t, log, "withdrawal-w1", append([]eventlog.Event{first}, more...)...)
	if read := mustRead(t, log, "withdrawal-w1", 0); read[0].Position != p1 || read[2].Position != p2 {
		t.Errorf("read positions %d and %d, but %d and %d were acknowledged", read[0].Position, read[2].Position, p1, p2)
	}

	bare := eventlog.Event{ID: uuid.New(), Type: "Bare"}
	binary := eventlog.Event{ID: uuid.New(), Type: "Binary", Data: []byte{0, 0xff, '\'', 0}, Metadata: []byte("\x00")}
	mustAppend(t, log, to("withdrawal-w2", 0, bare, binary))
	wantStream(t, log, "withdrawal-w2", bare, binary)
}

// wantConflict fails the test unless the error is a conflict about this stream.
func wantConflict(t *testing.T, err error, stream string, at, actual uint64) {
	t.Helper()
	var conflict *eventlog.Conflict
	if !errors.As(err, &conflict) {
		t.Fatalf("Append = %v, want a conflict on %q", err, stream)
	}
	if conflict.Stream != stream || conflict.At != at {
		t.Errorf("conflict is about %q at %d, want %q at %d", conflict.Stream, conflict.At, stream, at)
	}
	if conflict.Actual != nil && *conflict.Actual != actual {
		t.Errorf("conflict says that there are %d events, there are %d", *conflict.Actual, actual)
	}
}

func conflicts(t *testing.T, h Harness) {
	log := h.open(t)
	stored := events(3)
	mustAppend(t, log, to("known", 0, stored...))
	for _, c := range []struct {
		name, stream string
		at, actual   uint64
	}{
		{"new stream, one too far", "new", 1, 0},
		{"new stream, far too far", "new", math.MaxInt64 - 1, 0},
		{"existing stream as if it were new", "known", 0, 3},
		{"behind", "known", 2, 3},
		{"ahead by one", "known", 4, 3},
		{"far ahead", "known", math.MaxInt64 - 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := log.Append(t.Context(), to(c.stream, c.at, event("intruder")))
			wantConflict(t, err, c.stream, c.at, c.actual)
			wantStream(t, log, "new")
			wantStream(t, log, "known", stored...)
		})
	}
}

func eventsTogether(t *testing.T, h Harness) {
	log := h.open(t)
	most := events(eventlog.MaxAppendEvents)
	mustAppend(t, log, to("s", 0, most...))
	// The events overlap what is there and go beyond it; none may be written.
	_, err := log.Append(t.Context(), to("s", uint64(len(most)-1), events(3)...))
	wantConflict(t, err, "s", uint64(len(most)-1), uint64(len(most)))
	// Not even when the overlapping one is the very event that is there.
	_, err = log.Append(t.Context(), to("s", uint64(len(most)-1), most[len(most)-1], event("beyond")))
	wantConflict(t, err, "s", uint64(len(most)-1), uint64(len(most)))
	wantStream(t, log, "s", most...)
}

func severalStreams(t *testing.T, h Harness) {
	log := h.open(t)
	key, claim := event("reserved"), events(2)
	last := mustAppend(t, log, to("key", 0, key), to("withdrawal", 0, claim...))
	wantStream(t, log, "key", key)
	wantStream(t, log, "withdrawal", claim...)
	if all := mustReadAll(t, log, eventlog.Start); len(all) != 3 || all[2].Position != last || all[0].Stream != "key" {
		t.Errorf("the log has %v, want key, withdrawal, withdrawal, ending at %d", all, last)
	}

	// The second of three fails: the first is there only on an engine that cannot
	// take it back, and the third never is.
	before := event("before")
	_, err := log.Append(t.Context(), to("a", 0, before), to("withdrawal", 1, event("late")), to("b", 0, event("after")))
	wantConflict(t, err, "withdrawal", 1, 2)
	if h.CommitsTogether {
		wantStream(t, log, "a")
	} else {
		wantStream(t, log, "a", before)
	}
	wantStream(t, log, "b")
	wantStream(t, log, "withdrawal", claim...)
}

func invalidAppends(t *testing.T, h Harness) {
	log := h.open(t)
	for name, appends := range map[string][]eventlog.StreamAppend{
		"none":               nil,
		"no events":          {to("s", 0)},
		"no stream":          {to("", 0, event("x"))},
		"reserved stream":    {to("$all", 0, event("x"))},
		"no id":              {to("s", 0, eventlog.Event{Type: "T"})},
		"no type":            {to("s", 0, eventlog.Event{ID: uuid.New()})},
		"same stream twice":  {to("s", 0, event("x")), to("s", 1, event("y"))},
		"second one invalid": {to("s", 0, event("x")), to("r", 0)},
		"too many events":    {to("s", 0, events(eventlog.MaxAppendEvents+1)...)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := log.Append(t.Context(), appends...)
			var invalid *eventlog.Invalid
			if !errors.As(err, &invalid) {
				t.Fatalf("Append = %v, want an Invalid", err)
			}
			if all := mustReadAll(t, log, eventlog.Start); len(all) != 0 {
				t.Fatalf("%d events were written", len(all))
			}
		})
	}
}

func largeEvents(t *testing.T, h Harness) {
	log := h.open(t)
	sized := func(n int) eventlog.Event {
		return eventlog.Event{ID: uuid.New(), Type: "L", Data: bytes.Repeat([]byte("d"), n/2), Metadata: bytes.Repeat([]byte("m"), n-n/2-1)}
	}
	limit := sized(eventlog.MaxAppendBytes)
	mustAppend(t, log, to("s", 0, limit))
	_, err := log.Append(t.Context(), to("s", 1, sized(eventlog.MaxAppendBytes+1)))
	var invalid *eventlog.Invalid
	if !errors.As(err, &invalid) {
		t.Fatalf("Append of one byte too many = %v, want an Invalid", err)
	}
	wantStream(t, log, "s", limit)
	// A stream of more than any page of reading, and several at once.
	want := []eventlog.Event{limit}
	for range 5 {
		e := sized(eventlog.MaxAppendBytes)
		mustAppend(t, log, to("s", uint64(len(want)), e))
		want = append(want, e)
	}
	wantStream(t, log, "s", want...)
	if all := mustReadAll(t, log, eventlog.Start); len(all) != len(want) {
		t.Fatalf("ReadAll yields %d events, want %d", len(all), len(want))
	}
}

func oddNames(t *testing.T, h Harness) {
	log := h.open(t)
	names := []string{
		"-", "a", "A", "a ", " a", "a  ", "w1", "w10", "withdrawal-", "withdrawal-a-b-c", "a'b", `a"b`, "a%b", "a_b", "a/b", "a?b#c",
		"é", "e\u0301", "銀行", "😀", "\u00a0", "nul", "null", "0", "00", "a$", "*", ":memory:",
		strings.Repeat("x", eventlog.MaxStreamName), strings.Repeat("x", eventlog.MaxStreamName-1), strings.Repeat("é", eventlog.MaxStreamName/2),
	}
	stored := make(map[string]eventlog.Event, len(names))
	for _, name := range names {
		stored[name] = event("of " + name)
		mustAppend(t, log, to(name, 0, stored[name]))
	}
	for _, name := range names {
		wantStream(t, log, name, stored[name])
	}
	for _, name := range []string{"", "w", "w100", "W1", "x", "%", "withdrawal", strings.Repeat("x", 2*eventlog.MaxStreamName)} {
		if got := mustRead(t, log, name, 0); len(got) != 0 {
			t.Errorf("stream %q, which nobody wrote, has %d events", name, len(got))
		}
	}
}

func retries(t *testing.T, h Harness) {
	log := h.open(t)
	first, second := events(2), events(3)
	p1 := mustAppend(t, log, to("s", 0, first...))
	p2 := mustAppend(t, log, to("s", 2, second...))
	for range 2 {
		if p := mustAppend(t, log, to("s", 2, second...)); p != p2 {
			t.Errorf("the retry says position %d, the append said %d", p, p2)
		}
		if p := mustAppend(t, log, to("s", 0, first...)); p != p1 {
			t.Errorf("the retry says position %d, the append said %d", p, p1)
		}
	}
	wantStream(t, log, "s", append(first, second...)...)

	// The same events at another revision are not a retry.
	_, err := log.Append(t.Context(), to("s", 1, first...))
	wantConflict(t, err, "s", 1, 5)
	_, err = log.Append(t.Context(), to("s", 6, second...))
	wantConflict(t, err, "s", 6, 5)
}

func sameIDs(t *testing.T, h Harness) {
	log := h.open(t)
	stored := events(2)
	mustAppend(t, log, to("s", 0, stored...))
	for name, change := range map[string]func(e *eventlog.Event){
		"data":           func(e *eventlog.Event) { e.Data = []byte("event X") },
		"data shorter":   func(e *eventlog.Event) { e.Data = e.Data[:3] },
		"no data":        func(e *eventlog.Event) { e.Data = nil },
		"metadata":       func(e *eventlog.Event) { e.Metadata = []byte("about event X") },
		"type":           func(e *eventlog.Event) { e.Type = "tested" },
		"id":             func(e *eventlog.Event) { e.ID = uuid.New() },
		"data moved out": func(e *eventlog.Event) { e.Data, e.Metadata = nil, append(bytes.Clone(e.Data), e.Metadata...) },
	} {
		for i := range stored {
			t.Run(fmt.Sprintf("%s of event %d", name, i), func(t *testing.T) {
				changed := append([]eventlog.Event(nil), stored...)
				change(&changed[i])
				_, err := log.Append(t.Context(), to("s", 0, changed...))
				wantConflict(t, err, "s", 0, 2)
				wantStream(t, log, "s", stored...)
			})
		}
	}
}

func unknownResult(t *testing.T, h Harness) {
	log := h.open(t)
	faulty := Faulty(log)
	var want []eventlog.Event
	for _, fault := range []Fault{UnknownAfterCommit, UnknownBeforeCommit, NotExecuted, UnknownAfterCommit} {
		a := to("s", uint64(len(want)), events(2)...)
		faulty.Next(fault)
		if _, err := faulty.Append(t.Context(), a); !errors.Is(err, ErrInjected) {
			t.Fatalf("Append = %v, want the injected fault", err)
		}
		for range 2 {
			if _, err := faulty.Append(t.Context(), a); err != nil {
				t.Fatalf("the retry after fault %d: %v", fault, err)
			}
		}
		want = append(want, a.Events...)
		wantStream(t, log, "s", want...)
	}
}

func retriesSeveral(t *testing.T, h Harness) {
	log := h.open(t)
	both := []eventlog.StreamAppend{to("a", 0, event("a")), to("b", 0, event("b"))}
	// Only the first has been written, as an engine that applies them one by one
	// leaves it; the retry writes the second and leaves the first alone.
	mustAppend(t, log, both[0])
	last := mustAppend(t, log, both...)
	if again := mustAppend(t, log, both...); again != last {
		t.Errorf("the second retry says position %d, the first said %d", again, last)
	}
	wantStream(t, log, "a", both[0].Events...)
	wantStream(t, log, "b", both[1].Events...)
	if all := mustReadAll(t, log, eventlog.Start); len(all) != 2 {
		t.Errorf("the log has %d events, want 2", len(all))
	}
}

func cancelledContexts(t *testing.T, h Harness) {
	log := h.open(t)
	stored := event("stored")
	mustAppend(t, log, to("s", 0, stored))
	reason := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	_, err := log.Append(ctx, to("s", 1, event("never")))
	if !errors.Is(err, eventlog.ErrNotExecuted) || !errors.Is(err, reason) {
		t.Errorf("Append = %v, want ErrNotExecuted because the caller left", err)
	}
	for name, sequence := range readings(ctx, log) {
		if list, err := collect(sequence); !errors.Is(err, reason) || len(list) != 0 {
			t.Errorf("%s = %d events, %v, want the cause of the cancellation", name, len(list), err)
		}
	}
	wantStream(t, log, "s", stored)
	mustAppend(t, log, to("s", 1, event("next")))
}
