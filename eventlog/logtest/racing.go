package logtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"holdfast/eventlog"
)

// acknowledgedIsStored lets 200 writers append to ten streams, each deciding from what
// it has read, and counts: what was acknowledged is in the log once, and nothing else.
func acknowledgedIsStored(t *testing.T, h Harness) {
	log := h.open(t)
	const writers, streams, each = 200, 10, 2
	acknowledged := make([]map[string]eventlog.Position, writers)
	var group sync.WaitGroup
	for w := range writers {
		acknowledged[w] = make(map[string]eventlog.Position)
		group.Go(func() {
			stream := fmt.Sprintf("account-%d", w%streams)
			for len(acknowledged[w]) < each {
				head, err := collect(log.ReadStream(t.Context(), stream, 0))
				if err != nil {
					t.Errorf("ReadStream: %v", err)
					return
				}
				e := event(fmt.Sprintf("of writer %d", w))
				position, err := log.Append(t.Context(), to(stream, uint64(len(head)), e))
				var conflict *eventlog.Conflict
				switch {
				case err == nil:
					acknowledged[w][e.ID.String()] = position
				case !errors.As(err, &conflict):
					t.Errorf("Append: %v", err)
					return
				}
			}
		})
	}
	group.Wait()
	all := mustReadAll(t, log, eventlog.Start)
	if len(all) != writers*each {
		t.Errorf("the log has %d events, %d were acknowledged", len(all), writers*each)
	}
	stored := make(map[string]eventlog.Position)
	for _, recorded := range all {
		stored[recorded.ID.String()] = recorded.Position
	}
	for w := range acknowledged {
		for id, position := range acknowledged[w] {
			if stored[id] != position {
				t.Errorf("event %s was acknowledged at position %d, it is at %d", id, position, stored[id])
			}
		}
	}
	wantOrder(t, log, all)
}

// wantOrder fails the test unless positions grow, revisions count up from 0 in every
// stream, and reading each stream gives the same as reading all.
func wantOrder(t *testing.T, log eventlog.Log, all []eventlog.Recorded) {
	t.Helper()
	streams := make(map[string][]eventlog.Event)
	last := eventlog.Start
	for _, recorded := range all {
		if recorded.Position <= last {
			t.Fatalf("position %d comes after %d", recorded.Position, last)
		}
		last = recorded.Position
		if want := uint64(len(streams[recorded.Stream])); recorded.Revision != want {
			t.Fatalf("revision %d of %q comes where %d should be", recorded.Revision, recorded.Stream, want)
		}
		streams[recorded.Stream] = append(streams[recorded.Stream], recorded.Event)
	}
	for stream, want := range streams {
		wantStream(t, log, stream, want...)
	}
}

// racingClaimants lets 64 callers claim the same withdrawal at the same revision: one
// gets it, the others are told of a conflict (A10).
func racingClaimants(t *testing.T, h Harness) {
	log := h.open(t)
	const claimants = 64
	requested := event("requested")
	mustAppend(t, log, to("withdrawal", 0, requested))
	claims := make([]eventlog.Event, claimants)
	results := make([]error, claimants)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range claimants {
		claims[i] = event(fmt.Sprintf("claimed by %d", i))
		group.Go(func() {
			<-start
			_, results[i] = log.Append(t.Context(), to("withdrawal", 1, claims[i]))
		})
	}
	close(start)
	group.Wait()
	var winners []eventlog.Event
	for i, err := range results {
		if err == nil {
			winners = append(winners, claims[i])
			continue
		}
		wantConflict(t, err, "withdrawal", 1, 2)
	}
	if len(winners) != 1 {
		t.Fatalf("%d claimants won, want 1", len(winners))
	}
	wantStream(t, log, "withdrawal", requested, winners[0])
}

// orderUnderConcurrency lets readers look on while several streams are written at once.
func orderUnderConcurrency(t *testing.T, h Harness) {
	log := h.open(t)
	const writers, each = 16, 20
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		writing.Go(func() {
			for i := range uint64(each) {
				if _, err := log.Append(t.Context(), to(fmt.Sprintf("s%d", w), i*2, events(2)...)); err != nil {
					t.Errorf("Append: %v", err)
					return
				}
			}
		})
	}
	for range 2 {
		reading.Go(func() {
			seen := 0
			for finished := false; !finished; {
				select {
				case <-done:
					finished = true
				default:
				}
				all, err := collect(log.ReadAll(t.Context(), eventlog.Start))
				if err != nil {
					t.Errorf("ReadAll: %v", err)
					return
				}
				if len(all) < seen {
					t.Errorf("the log had %d events and now has %d", seen, len(all))
				}
				seen = len(all)
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	all := mustReadAll(t, log, eventlog.Start)
	if len(all) != writers*each*2 {
		t.Fatalf("the log has %d events, want %d", len(all), writers*each*2)
	}
	wantOrder(t, log, all)
}

// closeDuringUse closes the log while it is being written and read: whatever was
// acknowledged stays, everybody else is told.
func closeDuringUse(t *testing.T, h Harness) {
	log := h.Open(t)
	const writers = 16
	acknowledged := make([]uint64, writers)
	started := make(chan struct{}, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for {
				_, err := log.Append(context.Background(), to(fmt.Sprintf("s%d", w), acknowledged[w], event("x")))
				if err != nil {
					if !errors.Is(err, eventlog.ErrClosed) {
						t.Errorf("Append = %v, want ErrClosed", err)
					}
					return
				}
				if acknowledged[w]++; acknowledged[w] == 3 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		group.Go(func() {
			for {
				if _, err := collect(log.ReadStream(context.Background(), "s0", 0)); err != nil {
					if !errors.Is(err, eventlog.ErrClosed) {
						t.Errorf("ReadStream = %v, want ErrClosed", err)
					}
					return
				}
			}
		})
	}
	for range writers {
		<-started
	}
	if h.Reopen == nil {
		if err := log.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		group.Wait()
		return
	}
	reopened := h.Reopen(t, log)
	defer reopened.Close()
	group.Wait()
	for w := range writers {
		if got := mustRead(t, reopened, fmt.Sprintf("s%d", w), 0); uint64(len(got)) != acknowledged[w] {
			t.Errorf("stream s%d has %d events, %d were acknowledged", w, len(got), acknowledged[w])
		}
	}
}
