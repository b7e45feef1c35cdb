package logtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"holdfast/eventlog"
)

// damagedStreams takes one event out of a stream: everything that touches the stream is
// refused (SPEC D5), and other streams are not affected.
func damagedStreams(t *testing.T, h Harness) {
	if h.Damage == nil {
		t.Skip("the engine's streams cannot be damaged")
	}
	for _, c := range []struct {
		name     string
		revision uint64
		from     uint64
		events   int
		kind     eventlog.DamageKind
	}{
		{"the first of several", 0, 0, 4, eventlog.Truncated},
		{"the first, read from behind it", 0, 2, 4, eventlog.Truncated},
		{"one in the middle", 2, 0, 4, eventlog.Gap},
		{"one in the middle, read from there", 2, 2, 4, eventlog.Gap},
		{"the only one", 0, 0, 1, eventlog.Truncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := h.open(t)
			sound := event("sound")
			mustAppend(t, log, to("s", 0, events(c.events)...))
			mustAppend(t, log, to("sound", 0, sound))
			h.Damage(t, log, "s", c.revision)

			_, err := collect(log.ReadStream(t.Context(), "s", c.from))
			wantDamaged(t, "ReadStream", err, "s", c.kind)
			for at := range uint64(c.events) + 1 {
				_, err := log.Append(t.Context(), to("s", at, event("never")))
				wantDamaged(t, "Append", err, "s", c.kind)
			}
			wantStream(t, log, "sound", sound)
			mustAppend(t, log, to("sound", 1, event("next")))
		})
	}
}

func wantDamaged(t *testing.T, what string, err error, stream string, kind eventlog.DamageKind) {
	t.Helper()
	var damaged *eventlog.Damaged
	if !errors.As(err, &damaged) || damaged.Stream != stream || damaged.Kind != kind || damaged.Reason == "" {
		t.Errorf("%s = %v, want a Damaged (%s) on %q", what, err, kind, stream)
	}
	if errors.Is(err, eventlog.ErrNotExecuted) || errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("%s = %v, which invites to try again", what, err)
	}
}

// readingPastDamage takes events out of the log: readers of the whole log get all that
// is left, because a damaged stream must not hide the others from an operator.
func readingPastDamage(t *testing.T, h Harness) {
	if h.Damage == nil {
		t.Skip("the engine's streams cannot be damaged")
	}
	log := h.open(t)
	mustAppend(t, log, to("a", 0, events(3)...))
	mustAppend(t, log, to("b", 0, events(1)...))
	mustAppend(t, log, to("c", 0, events(3)...))
	want := mustReadAll(t, log, eventlog.Start)
	for _, gone := range []struct {
		stream   string
		revision uint64
	}{{"a", 0}, {"b", 0}, {"c", 1}} {
		h.Damage(t, log, gone.stream, gone.revision)
		want = slices.DeleteFunc(want, func(r eventlog.Recorded) bool {
			return r.Stream == gone.stream && r.Revision == gone.revision
		})
	}
	if got := mustReadAll(t, log, eventlog.Start); !slices.EqualFunc(got, want, equal) {
		t.Errorf("ReadAll = %v, want %v", got, want)
	}
	var got []eventlog.Recorded
	for recorded, err := range log.Follow(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatalf("Follow: %v", err)
		}
		if got = append(got, recorded); len(got) == len(want) {
			break
		}
	}
	if !slices.EqualFunc(got, want, equal) {
		t.Errorf("Follow = %v, want %v", got, want)
	}
	for i := range want {
		if rest := mustReadAll(t, log, want[i].Position); !slices.EqualFunc(rest, want[i+1:], equal) {
			t.Errorf("ReadAll after position %d = %v, want %v", want[i].Position, rest, want[i+1:])
		}
	}
}

// heads asks where the log ends, and whether its positions count up if it says so.
func heads(t *testing.T, h Harness) {
	log := h.open(t)
	headed, ok := log.(eventlog.Headed)
	if !ok {
		t.Skip("the engine does not say where it ends")
	}
	want := func(position eventlog.Position) {
		t.Helper()
		if got, err := headed.Head(t.Context()); got != position || err != nil {
			t.Errorf("Head = %d, %v, want %d", got, err, position)
		}
	}
	want(eventlog.Start)
	for i := range uint64(3) {
		want(mustAppend(t, log, to("s", i*2, events(2)...), to("r", i, event("x"))))
	}
	if _, dense := log.(eventlog.Dense); dense {
		for i, recorded := range mustReadAll(t, log, eventlog.Start) {
			if recorded.Position != eventlog.Position(i+1) {
				t.Errorf("event %d is at position %d, but the log says that its positions are dense", i+1, recorded.Position)
			}
		}
	}
	reason := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := headed.Head(ctx); !errors.Is(err, reason) {
		t.Errorf("Head = %v, want the cause of the cancellation", err)
	}
	if err := log.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if _, err := headed.Head(t.Context()); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("Head = %v, want ErrClosed", err)
	}
}
