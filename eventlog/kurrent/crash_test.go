package kurrent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// restart stops a node, breaking all connections, and starts it again.
func restart(t *testing.T, n *kurrentnode.Node) {
	n.Stop()
	n.Listen(t)
}

// The node commits, and its connections break before it can say so.
func TestCommitThenDrop(t *testing.T) {
	n := kurrentnode.Keep(t)
	l := dial(t, n, nil)
	n.Lose(func(i int) error {
		if i%2 == 0 {
			restart(t, n)
		}
		return nil
	})
	for at := range uint64(5) {
		appended(t, l, tested("s", 3*at, 3))
	}
	if got := n.Streams.Len("s"); got != 15 {
		t.Errorf("%d events, want 15", got)
	}
}

// A node that restarts under load: what was acknowledged is there once, nobody is told of
// a conflict with itself, and a follower sees everything once and in order.
func TestRestartsUnderLoad(t *testing.T) {
	n := kurrentnode.Keep(t)
	options := brief()
	options.Patience = 20 * time.Second
	l, other := dial(t, n, options), dial(t, n, options)
	const writers, each = 8, 40
	followed := make(chan error, 1)
	go func() {
		next := map[string]uint64{}
		seen := 0
		for r, err := range other.Follow(context.Background(), eventlog.Start) {
			if err == nil && r.Revision != next[r.Stream] {
				err = fmt.Errorf("revision %d of %s comes where %d should be", r.Revision, r.Stream, next[r.Stream])
			}
			if err != nil {
				followed <- err
				return
			}
			next[r.Stream]++
			if seen++; seen == writers*each {
				break
			}
		}
		followed <- nil
	}()
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for at := range uint64(each) {
				if _, err := l.Append(t.Context(), tested(fmt.Sprint("s", w), at, 1)); err != nil {
					t.Errorf("Append = %v", err)
					return
				}
			}
		})
	}
	for range 8 {
		before := n.Streams.Size()
		restart(t, n)
		eventually(t, func() bool { return n.Streams.Size() >= min(before+20, writers*each) }, func() string { return "the writers do not go on" })
	}
	writing.Wait()
	if err := <-followed; err != nil {
		t.Errorf("Follow: %v", err)
	}
	if got := n.Streams.Size(); got != writers*each {
		t.Errorf("the log has %d events, %d were acknowledged", got, writers*each)
	}
}

// What one process claimed, another finds, whatever became of the first: there is nothing
// in a process's memory that counts.
func TestClaimOutlivesItsProcess(t *testing.T) {
	n := kurrentnode.Keep(t)
	first := dial(t, n, nil)
	n.Lose(func(int) error { restart(t, n); return errors.New("lost") })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	claim := tested("s", 0, 1)
	if _, err := first.Append(ctx, claim); !errors.Is(err, eventlog.ErrUnknownResult) {
		t.Fatalf("Append = %v, want an unknown result", err)
	}
	n.Lose(nil)
	second := dial(t, n, nil)
	var c *eventlog.Conflict
	if _, err := second.Append(t.Context(), tested("s", 0, 1)); !errors.As(err, &c) || c.Actual == nil || *c.Actual != 1 {
		t.Errorf("another's claim = %v, want a conflict", err)
	}
	appended(t, second, claim) // the first one's retry
}
