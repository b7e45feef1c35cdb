package kurrent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/eventlog/logtest"
	"holdfast/internal/kurrentnode"
)

// told is what writers were told of their events.
type told struct {
	mu    sync.Mutex
	taken map[string]map[uint64]uuid.UUID // by stream and revision: told that it is there
	lost  map[uuid.UUID]bool              // told that it is not
	count int
}

func (w *told) heard(a eventlog.StreamAppend, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.lost[a.Events[0].ID] = true
		return
	}
	if w.taken[a.Stream] == nil {
		w.taken[a.Stream] = map[uint64]uuid.UUID{}
	}
	w.taken[a.Stream][a.At] = a.Events[0].ID
	w.count++
}

func (w *told) acknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// compete appends to a stream that others append to as well, until so many of its events
// were taken.
func compete(t *testing.T, l *Log, stream string, events int, w *told) {
	at := uint64(0)
	for taken := 0; taken < events; {
		a := tested(stream, at, 1)
		_, err := l.Append(t.Context(), a)
		var conflict *eventlog.Conflict
		switch {
		case err == nil:
			taken++
			at++
		case errors.As(err, &conflict) && conflict.Actual != nil:
			at = *conflict.Actual
		case !errors.As(err, &conflict):
			t.Errorf("Append = %v", err)
			return
		}
		w.heard(a, err)
	}
}

// failOver lets another node lead once the one that leads has written something that no
// other node has.
func failOver(t *testing.T, c *kurrentnode.Cluster) {
	a := c.Leader()
	c.Cut(a)
	before := a.Streams.Size()
	eventually(t, func() bool { return a.Streams.Size() > before }, func() string { return "nobody writes" })
	c.Elect(t)
	c.Mend(a)
}

// Leaders come and go under load, each with a tail that nobody else has: what was
// acknowledged is in the log at its revision, what was said to conflict is not, there is
// nothing else, and a follower sees it all once and in order.
func TestFailoversUnderLoad(t *testing.T) {
	options := brief()
	options.Patience = 30 * time.Second
	c, logs := gathered(t, 4, options)
	const each, writers = 25, 6
	w := &told{taken: map[string]map[uint64]uuid.UUID{}, lost: map[uuid.UUID]bool{}}
	seen := map[string][]uuid.UUID{}
	followed := make(chan error, 1)
	go func() { followed <- followAll(logs[3], writers*each, seen) }()
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() { compete(t, logs[i%3], fmt.Sprint("s", i%2), each, w) })
	}
	for round := range 6 {
		before := w.acknowledged()
		eventually(t, func() bool { return w.acknowledged() >= before+5 }, func() string { return "the writers do not go on" })
		if w.acknowledged() > writers*each*3/4 {
			t.Logf("%d rounds", round)
			break // too few are left for another tail
		}
		failOver(t, c)
	}
	writing.Wait()
	if err := <-followed; err != nil {
		t.Errorf("Follow: %v", err)
	}
	found := 0
	for _, stream := range []string{"s0", "s1"} {
		for r, err := range logs[3].ReadStream(t.Context(), stream, 0) {
			if err != nil {
				t.Fatal(err)
			}
			found++
			if r.Revision >= uint64(len(seen[stream])) || seen[stream][r.Revision] != r.ID {
				t.Errorf("%s has an event at revision %d that its follower did not see there", stream, r.Revision)
			}
			if w.taken[stream][r.Revision] != r.ID {
				t.Errorf("%s has an event at revision %d of which nobody was told", stream, r.Revision)
			}
			if w.lost[r.ID] {
				t.Errorf("%s has an event at revision %d that was said to conflict", stream, r.Revision)
			}
		}
	}
	if found != w.count {
		t.Errorf("the log has %d events, %d were acknowledged", found, w.count)
	}
}

// followAll follows a log until it has seen so many events, each where it should be, and
// notes them by their streams.
func followAll(l *Log, events int, seen map[string][]uuid.UUID) error {
	for r, err := range l.Follow(context.Background(), eventlog.Start) {
		if err == nil && r.Revision != uint64(len(seen[r.Stream])) {
			err = fmt.Errorf("revision %d of %s comes where %d should be", r.Revision, r.Stream, len(seen[r.Stream]))
		}
		if err != nil {
			return err
		}
		seen[r.Stream] = append(seen[r.Stream], r.ID)
		if events--; events == 0 {
			return nil
		}
	}
	return errors.New("it ended")
}

// The port's rules hold on a cluster whose leader changes between any two openings.
func TestConformanceOnCluster(t *testing.T) {
	clusters := map[eventlog.Log]*kurrentnode.Cluster{}
	open := func(t *testing.T, c *kurrentnode.Cluster) eventlog.Log {
		l, err := Open(t.Context(), c.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		clusters[l] = c
		return l
	}
	logtest.Run(t, logtest.Harness{
		Open: func(t *testing.T) eventlog.Log { return open(t, kurrentnode.Gather(t, 3)) },
		Reopen: func(t *testing.T, log eventlog.Log) eventlog.Log {
			c := clusters[log]
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			old := c.Leader()
			c.Cut(old)
			c.Elect(t)
			c.Mend(old)
			return open(t, c)
		},
		Damage: func(t *testing.T, log eventlog.Log, stream string, revision uint64) {
			clusters[log].Leader().Streams.Remove(stream, revision)
		},
	})
}
