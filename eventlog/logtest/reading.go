package logtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"testing"

	"holdfast/eventlog"
)

// readings are all ways to read a log that has a stream s.
func readings(ctx context.Context, log eventlog.Log) map[string]iter.Seq2[eventlog.Recorded, error] {
	return map[string]iter.Seq2[eventlog.Recorded, error]{
		"ReadStream": log.ReadStream(ctx, "s", 0),
		"ReadAll":    log.ReadAll(ctx, eventlog.Start),
		"Follow":     log.Follow(ctx, eventlog.Start),
	}
}

func readingFromTheMiddle(t *testing.T, h Harness) {
	log := h.open(t)
	for i := range uint64(5) {
		mustAppend(t, log, to("s", i*2, events(2)...), to(fmt.Sprintf("other-%d", i), 0, event("x")))
	}
	all := mustReadAll(t, log, eventlog.Start)
	if len(all) != 15 {
		t.Fatalf("the log has %d events, want 15", len(all))
	}
	for i, recorded := range all {
		rest := mustReadAll(t, log, recorded.Position)
		if len(rest) != len(all)-i-1 || len(rest) > 0 && rest[0].Position != all[i+1].Position {
			t.Errorf("ReadAll after event %d yields %d events, want the %d behind it", i, len(rest), len(all)-i-1)
		}
	}
	for from := range uint64(12) {
		read := mustRead(t, log, "s", from)
		if len(read) != max(0, 10-int(from)) || len(read) > 0 && read[0].Revision != from {
			t.Errorf("ReadStream from %d yields %d events", from, len(read))
		}
	}
	last := all[len(all)-1].Position
	for _, beyond := range []eventlog.Position{last + 1, math.MaxInt64, math.MaxUint64} {
		if rest := mustReadAll(t, log, beyond); len(rest) != 0 {
			t.Errorf("ReadAll after %d yields %d events", beyond, len(rest))
		}
	}
	for _, beyond := range []uint64{math.MaxInt64, math.MaxUint64} {
		if rest := mustRead(t, log, "s", beyond); len(rest) != 0 {
			t.Errorf("ReadStream from %d yields %d events", beyond, len(rest))
		}
	}
	if rest := mustRead(t, log, "nobody", 7); len(rest) != 0 {
		t.Errorf("a stream that does not exist has %d events", len(rest))
	}
}

// longStreams has streams of more events than an engine reads in one go.
func longStreams(t *testing.T, h Harness) {
	log := h.open(t)
	var want []eventlog.Event
	for range 6 {
		list := events(eventlog.MaxAppendEvents)
		mustAppend(t, log, to("long", uint64(len(want)), list...))
		want = append(want, list...)
	}
	wantStream(t, log, "long", want...)
	wantOrder(t, log, mustReadAll(t, log, eventlog.Start))
	from := uint64(len(want) - 700)
	if tail := mustRead(t, log, "long", from); len(tail) != 700 || tail[0].Revision != from {
		t.Errorf("reading the last 700 events yields %d", len(tail))
	}
}

func breakingOut(t *testing.T, h Harness) {
	log := h.open(t)
	mustAppend(t, log, to("s", 0, events(20)...))
	// More often than any engine has connections, so that one that is not given back
	// is missed.
	for range 100 {
		for name, sequence := range readings(t.Context(), log) {
			n := 0
			for _, err := range sequence {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if n++; n == 3 {
					break
				}
			}
			if n != 3 {
				t.Fatalf("%s yielded %d events before the break, want 3", name, n)
			}
		}
	}
	wantStream(t, log, "other")
}

// callingWhileReading appends and reads, many levels deep, while events are consumed.
func callingWhileReading(t *testing.T, h Harness) {
	log := h.open(t)
	mustAppend(t, log, to("s", 0, events(3)...))
	next := uint64(0)
	var descend func(depth int)
	descend = func(depth int) {
		if depth == 0 {
			mustAppend(t, log, to("inner", next, event("from within")))
			next++
			return
		}
		for _, err := range log.ReadStream(t.Context(), "s", 0) {
			if err != nil {
				t.Fatalf("ReadStream: %v", err)
			}
			for _, err := range log.ReadAll(t.Context(), eventlog.Start) {
				if err != nil {
					t.Fatalf("ReadAll: %v", err)
				}
				descend(depth - 1)
				break
			}
			break
		}
	}
	descend(40)
	for recorded, err := range log.ReadStream(t.Context(), "s", 0) {
		if err != nil {
			t.Fatalf("ReadStream: %v", err)
		}
		mustAppend(t, log, to("copy", recorded.Revision, event("copied")))
	}
	if got := len(mustRead(t, log, "copy", 0)); got != 3 {
		t.Errorf("%d events were copied, want 3", got)
	}
}

// following appends while two followers read: neither misses or repeats anything.
func following(t *testing.T, h Harness) {
	log := h.open(t)
	const before, after = 10, 60
	mustAppend(t, log, to("s", 0, events(before)...))
	type follower struct {
		got  []eventlog.Recorded
		err  error
		done chan struct{}
	}
	followers := make([]*follower, 2)
	for i := range followers {
		f := &follower{done: make(chan struct{})}
		followers[i] = f
		go func() {
			defer close(f.done)
			for recorded, err := range log.Follow(t.Context(), eventlog.Start) {
				if f.err = err; err != nil {
					return
				}
				if f.got = append(f.got, recorded); len(f.got) == before+after {
					return
				}
			}
		}()
	}
	for i := range uint64(after) {
		mustAppend(t, log, to(fmt.Sprintf("s%d", i%7), i/7, event("x")))
	}
	all := mustReadAll(t, log, eventlog.Start)
	for _, f := range followers {
		<-f.done
		if f.err != nil || len(f.got) != len(all) {
			t.Fatalf("followed %d events, %v, want %d", len(f.got), f.err, len(all))
		}
		for i := range all {
			if f.got[i].Position != all[i].Position || f.got[i].ID != all[i].ID {
				t.Fatalf("event %d followed is at position %d, want %d", i, f.got[i].Position, all[i].Position)
			}
		}
	}
}

// followingEnds ends a follower that waits: by its context, and by closing the log.
func followingEnds(t *testing.T, h Harness) {
	follow := func(ctx context.Context, log eventlog.Log) (caughtUp chan struct{}, ended chan error) {
		caughtUp, ended = make(chan struct{}), make(chan error, 1)
		go func() {
			for _, err := range log.Follow(ctx, eventlog.Start) {
				if err != nil {
					ended <- err
					return
				}
				close(caughtUp)
			}
		}()
		return caughtUp, ended
	}
	log := h.Open(t)
	mustAppend(t, log, to("s", 0, event("only")))
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	caughtUp, ended := follow(ctx, log)
	<-caughtUp
	cancel(reason)
	if err := <-ended; !errors.Is(err, reason) {
		t.Errorf("Follow ended with %v, want the cause of the cancellation", err)
	}
	caughtUp, ended = follow(context.Background(), log)
	<-caughtUp
	if err := log.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if err := <-ended; !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("Follow ended with %v, want ErrClosed", err)
	}
}

func closing(t *testing.T, h Harness) {
	log := h.Open(t)
	mustAppend(t, log, to("s", 0, event("x")))
	for range 2 {
		if err := log.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	if _, err := log.Append(t.Context(), to("s", 1, event("y"))); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("Append = %v, want ErrClosed", err)
	}
	for name, sequence := range readings(t.Context(), log) {
		if list, err := collect(sequence); !errors.Is(err, eventlog.ErrClosed) || len(list) != 0 {
			t.Errorf("%s = %d events, %v, want ErrClosed", name, len(list), err)
		}
	}
}

func reopening(t *testing.T, h Harness) {
	if h.Reopen == nil {
		t.Skip("the engine is not durable")
	}
	log := h.Open(t)
	defer func() { log.Close() }()
	var want []eventlog.Event
	for range 5 {
		list := events(3)
		a := to("s", uint64(len(want)), list...)
		position := mustAppend(t, log, a)
		want = append(want, list...)
		log = h.Reopen(t, log)
		wantStream(t, log, "s", want...)
		if again := mustAppend(t, log, a); again != position {
			t.Errorf("the retry after reopening says position %d, the append said %d", again, position)
		}
		_, err := log.Append(t.Context(), to("s", 0, event("x")))
		wantConflict(t, err, "s", 0, uint64(len(want)))
	}
	wantOrder(t, log, mustReadAll(t, log, eventlog.Start))
}
