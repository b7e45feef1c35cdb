package kurrent

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// three opens a log on a cluster of three nodes.
func three(t *testing.T, options *Options) (*Log, *kurrentnode.Cluster) {
	t.Helper()
	c := kurrentnode.StartCluster(t)
	if options == nil {
		options = brief()
	}
	l, err := Open(t.Context(), c.URL(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, c
}

type answer struct {
	position eventlog.Position
	err      error
}

// inTheBackground appends, and returns where the result comes.
func inTheBackground(t *testing.T, l *Log, a eventlog.StreamAppend) <-chan answer {
	result := make(chan answer, 1)
	go func() {
		position, err := l.Append(t.Context(), a)
		result <- answer{position, err}
	}()
	return result
}

// settled waits until the cluster's streams have so many events, read or not.
func settled(t *testing.T, c *kurrentnode.Cluster, n int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); c.Streams().Size() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the cluster has %d events, want %d", c.Streams().Size(), n)
		}
	}
}

func ids(t *testing.T, l *Log, stream string) (list []string) {
	t.Helper()
	for e, err := range l.ReadStream(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.ID.String())
	}
	return list
}

// The leader decides against an append on account of one that the other nodes do not have
// yet and nobody can read: that is a conflict whose winner is not known. Once the winner is
// on the other nodes, it is told that it has won, and the loser sees it.
func TestConflictThatCannotBeReadYet(t *testing.T) {
	t.Parallel()
	l, c := three(t, &Options{Patience: 10 * time.Second, CallTimeout: time.Second, Unseen: 50 * time.Millisecond})
	c.Hold()
	first := tested("s", 0, 1)
	winner := inTheBackground(t, l, first)
	settled(t, c, 1)
	_, err := l.Append(t.Context(), tested("s", 0, 1))
	var conflict *eventlog.Conflict
	if !errors.As(err, &conflict) || conflict.Actual != nil {
		t.Fatalf("the second append = %v, want a conflict whose winner is not known", err)
	}
	if got := ids(t, l, "s"); len(got) != 0 {
		t.Fatalf("what only the leader has is read: %v", got)
	}
	c.Replicate()
	if r := <-winner; r.err != nil {
		t.Fatalf("the winner is told %v", r.err)
	}
	_, err = l.Append(t.Context(), tested("s", 0, 1))
	if !errors.As(err, &conflict) || conflict.Actual == nil || *conflict.Actual != 1 {
		t.Errorf("the third append = %v, want a conflict with one event", err)
	}
	if got := ids(t, l, "s"); len(got) != 1 || got[0] != first.Events[0].ID.String() {
		t.Errorf("the stream has %v", got)
	}
}

// What only the leader had is lost with it. Its caller was told nothing yet: the same
// bytes are tried again, the new leader takes them, and the event is there once. What was
// acknowledged before is still there.
func TestLostTail(t *testing.T) {
	t.Parallel()
	l, c := three(t, &Options{Patience: 10 * time.Second, CallTimeout: time.Second})
	if _, err := l.Append(t.Context(), tested("kept", 0, 2)); err != nil {
		t.Fatal(err)
	}
	c.Hold()
	a := tested("s", 0, 1)
	result := inTheBackground(t, l, a)
	settled(t, c, 3)
	c.Elect(c.Nodes[1])
	if r := <-result; r.err != nil {
		t.Fatalf("Append = %v", r.err)
	}
	if got := ids(t, l, "s"); len(got) != 1 || got[0] != a.Events[0].ID.String() {
		t.Errorf("the stream has %v, want the event once", got)
	}
	if got := ids(t, l, "kept"); len(got) != 2 {
		t.Errorf("of two events that were acknowledged there are %d", len(got))
	}
}

// Another caller's append may take the place of what was lost: then that one has won, and
// who repeats the lost one is told so.
func TestLostTailThatSomebodyElseTakes(t *testing.T) {
	t.Parallel()
	l, c := three(t, &Options{Patience: 10 * time.Second, CallTimeout: time.Second})
	other, err := Open(t.Context(), c.URL(), brief())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c.Hold()
	result := inTheBackground(t, l, tested("s", 0, 1))
	settled(t, c, 1)
	c.Elect(nil) // the lost one cannot be repeated until somebody leads
	usurper := tested("s", 0, 1)
	taken := inTheBackground(t, other, usurper)
	// Whichever of the two comes first: one of them has won, and the other is told so.
	c.Elect(c.Nodes[2])
	lost, won := <-result, <-taken
	var conflict *eventlog.Conflict
	if (lost.err == nil) == (won.err == nil) || lost.err != nil && !errors.As(lost.err, &conflict) || won.err != nil && !errors.As(won.err, &conflict) {
		t.Fatalf("the two were told %v and %v, want one winner", lost.err, won.err)
	}
	if got := ids(t, l, "s"); len(got) != 1 || (got[0] == usurper.Events[0].ID.String()) != (won.err == nil) {
		t.Errorf("the stream has %v", got)
	}
}

// An append whose commit never comes to an end is repeated, byte for byte, and in the end
// it is not known: it is there, and it may go.
func TestCommitThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	l, c := three(t, &Options{Patience: 400 * time.Millisecond, CallTimeout: 200 * time.Millisecond})
	c.Hold()
	a := tested("s", 0, 1)
	if _, err := l.Append(t.Context(), a); !errors.Is(err, eventlog.ErrUnknownResult) {
		t.Fatalf("Append = %v, want ErrUnknownResult", err)
	}
	if n := c.Streams().Len("s"); n != 1 {
		t.Errorf("the repetitions made %d events of one", n)
	}
	c.Replicate()
	if _, err := l.Append(t.Context(), a); err != nil {
		t.Errorf("the same append, once it is there = %v", err)
	}
}

// A follower shows what it has, however old. Everything is read on the leader, whichever
// node the client found.
func TestStaleFollower(t *testing.T) {
	t.Parallel()
	for _, names := range []string{"all nodes", "a follower alone"} {
		c := kurrentnode.StartCluster(t)
		c.Lag(c.Nodes[1])
		c.Lag(c.Nodes[2])
		url := c.URL()
		if names != "all nodes" {
			url = c.Nodes[1].URL()
		}
		l, err := Open(t.Context(), url, brief())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(t.Context(), tested("s", 0, 3)); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if got := ids(t, l, "s"); len(got) != 3 {
				t.Errorf("%s: the stream is read with %d events of 3", names, len(got))
			}
			n := 0
			for _, err := range l.ReadAll(t.Context(), eventlog.Start) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != 3 {
				t.Errorf("%s: the log is read with %d events of 3", names, n)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// During an election nobody answers. Calls wait for as long as they may, and go through
// once somebody leads.
func TestElection(t *testing.T) {
	t.Parallel()
	l, c := three(t, &Options{Patience: 10 * time.Second, CallTimeout: time.Second})
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
		t.Fatal(err)
	}
	c.Elect(nil)
	brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := l.Append(brief, tested("s", 1, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an append without a leader = %v", err)
	}
	result := inTheBackground(t, l, tested("other", 0, 1))
	c.Elect(c.Nodes[1])
	if r := <-result; r.err != nil {
		t.Errorf("an append over an election = %v", r.err)
	}
	if got := ids(t, l, "s"); len(got) != 1 {
		t.Errorf("the stream has %d events", len(got))
	}
}
