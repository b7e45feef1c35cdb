package kurrent

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// gathered starts a cluster that replicates, and opens logs on it.
func gathered(t *testing.T, logs int, options *Options) (c *kurrentnode.Cluster, list []*Log) {
	t.Helper()
	c = kurrentnode.Gather(t, 3)
	for range logs {
		l, err := Open(t.Context(), c.URL(), options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		list = append(list, l)
	}
	return c, list
}

// ends is where an append that runs ends.
type ends struct{ error chan error }

func appending(ctx context.Context, l *Log, a eventlog.StreamAppend) ends {
	e := ends{make(chan error, 1)}
	go func() {
		_, err := l.Append(ctx, a)
		e.error <- err
	}()
	return e
}

// written waits until a node has so many events of stream "s", whether or not they can be
// read.
func written(t *testing.T, n *kurrentnode.Node, events uint64) {
	t.Helper()
	eventually(t, func() bool { return n.Streams.Len("s") >= events }, func() string { return "it is not written" })
}

func lengthOf(t *testing.T, l *Log, stream string) (n int) {
	t.Helper()
	for _, err := range l.ReadStream(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// The repetition of an append that most nodes do not have gets no answer. It is repeated
// until they have, or the time is up; then its result is not known, and the same bytes may
// be tried again.
func TestRepetitionThatIsNotReady(t *testing.T) {
	options := brief()
	options.Patience = 500 * time.Millisecond
	c, logs := gathered(t, 1, options)
	l, a := logs[0], c.Leader()
	c.Cut(c.Nodes[1:]...)
	claim := tested("s", 0, 2)
	if _, err := l.Append(t.Context(), claim); !errors.Is(err, eventlog.ErrUnknownResult) {
		t.Fatalf("an append that is not replicated = %v, want an unknown result", err)
	}
	again := appending(t.Context(), l, claim)
	if tries, _ := a.Counts(); tries < 2 {
		t.Errorf("it was tried %d times", tries)
	}
	c.Mend(c.Nodes[1])
	if err := <-again.error; err != nil {
		t.Errorf("once it is replicated: %v", err)
	}
	if n := lengthOf(t, l, "s"); n != 2 {
		t.Errorf("the stream has %d events", n)
	}
}

// Who loses to an append that most nodes do not have is told that the length is not known;
// and, once they have it, how long the stream is.
func TestConflictWithTheUnreplicated(t *testing.T) {
	c, logs := gathered(t, 2, brief())
	c.Cut(c.Nodes[1:]...)
	claim := appending(t.Context(), logs[0], tested("s", 0, 1))
	written(t, c.Leader(), 1)
	var conflict *eventlog.Conflict
	if _, err := logs[1].Append(t.Context(), tested("s", 0, 1)); !errors.As(err, &conflict) || conflict.Actual != nil {
		t.Errorf("against what cannot be read: %v", err)
	}
	c.Mend(c.Nodes[2])
	if err := <-claim.error; err != nil {
		t.Errorf("the winner: %v", err)
	}
	if _, err := logs[1].Append(t.Context(), tested("s", 0, 1)); !errors.As(err, &conflict) || conflict.Actual == nil || *conflict.Actual != 1 {
		t.Errorf("against what can be read: %v", err)
	}
}

// A leader that is cut off takes an append with it. Its caller was told nothing, and the
// repetition lands on the next leader, once; or conflicts with who came before it there.
func TestLostTail(t *testing.T) {
	for name, overtaken := range map[string]bool{"and lands": false, "and is overtaken": true} {
		t.Run(name, func(t *testing.T) {
			options := brief()
			options.Patience = 200 * time.Millisecond
			c, logs := gathered(t, 2, options)
			a := c.Leader()
			appended(t, logs[0], tested("s", 0, 1))
			c.Cut(a)
			claim := tested("s", 1, 2)
			if _, err := logs[0].Append(t.Context(), claim); !errors.Is(err, eventlog.ErrUnknownResult) {
				t.Fatalf("an append that is not replicated = %v, want an unknown result", err)
			}
			if a.Streams.Len("s") != 3 {
				t.Fatal("it was not written")
			}
			b := c.Elect(t)
			want := uint64(3)
			if overtaken {
				appended(t, logs[1], tested("s", 1, 1))
				want = 2
			}
			_, err := logs[0].Append(t.Context(), claim)
			var conflict *eventlog.Conflict
			if overtaken != errors.As(err, &conflict) || !overtaken && err != nil {
				t.Errorf("the repetition: %v", err)
			}
			c.Mend(a)
			if a.Streams.Len("s") != want || b.Streams.Len("s") != want || lengthOf(t, logs[1], "s") != int(want) {
				t.Errorf("the nodes have %d and %d events, want %d", a.Streams.Len("s"), b.Streams.Len("s"), want)
			}
		})
	}
}

// An append may be on a node that has fallen behind when its repetition loses, on the next
// leader, to what most nodes do not have either; and the first node may lead once more. So
// that conflict settles nothing: who would be told of it would find its events in the log.
func TestConflictThatIsNotSettled(t *testing.T) {
	options := brief()
	options.Patience = 10 * time.Second
	c, logs := gathered(t, 2, options)
	a, third := c.Nodes[0], c.Nodes[2]
	c.Cut(c.Nodes[1], third)
	claim := appending(t.Context(), logs[0], tested("s", 0, 1))
	written(t, a, 1)
	c.Depose()
	c.Cut(a)
	c.Mend(c.Nodes[1], third)
	b := c.ElectAlone(t)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	other := appending(short, logs[1], tested("s", 0, 1))
	written(t, b, 1)
	<-other.error
	// The repetition has lost to the other's on b by now, or is about to; several times.
	tried := func() int { n, _ := b.Counts(); return n }
	before := tried()
	eventually(t, func() bool { return len(claim.error) > 0 || tried() >= before+3 }, func() string { return "it is not repeated" })
	if len(claim.error) > 0 {
		t.Fatalf("the append ended, and nothing is settled: %v", <-claim.error)
	}
	c.Cut(b)
	for _, n := range c.Nodes {
		if n != b {
			c.Mend(n)
		}
	}
	if c.Elect(t) != a {
		t.Fatal("the first node does not lead again: this shows nothing")
	}
	if err := <-claim.error; err != nil {
		t.Errorf("the append, which is in the log: %v", err)
	}
	if n := lengthOf(t, logs[1], "s"); n != 1 {
		t.Errorf("the stream has %d events", n)
	}
}

// A follower may lag behind. Even who knows no other node reads on the leader.
func TestStaleFollower(t *testing.T) {
	c, logs := gathered(t, 1, brief())
	stale := c.Nodes[2]
	c.Cut(stale)
	appended(t, logs[0], tested("s", 0, 3))
	l := dial(t, stale, nil)
	if n := lengthOf(t, l, "s"); n != 3 {
		t.Errorf("%d events were read, want 3", n)
	}
	if n := stale.Streams.Len("s"); n != 0 {
		t.Fatalf("the follower has %d events: this shows nothing", n)
	}
	n := 0
	for _, err := range dial(t, stale, nil).ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	head, err := dial(t, stale, nil).Head(t.Context())
	if err != nil || n != 3 || head != last(t, logs[0], "s") {
		t.Errorf("%d events of all, Head = %d, %v", n, head, err)
	}
	for r, err := range dial(t, stale, nil).Follow(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Revision == 2 {
			break
		}
	}
}

// Between two elections, calls wait.
func TestElection(t *testing.T) {
	c, logs := gathered(t, 1, brief())
	l := logs[0]
	c.Depose()
	claim := appending(t.Context(), l, tested("s", 0, 1))
	refusals := func() (n int) {
		for _, node := range c.Nodes {
			appends, _ := node.Counts()
			n += appends
		}
		return n
	}
	eventually(t, func() bool { return refusals() > 2 }, func() string { return "nobody was asked" })
	c.Elect(t)
	if err := <-claim.error; err != nil {
		t.Errorf("Append = %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c.Depose()
	if _, err := l.Append(ctx, tested("s", 1, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append while nobody leads = %v", err)
	}
	reading, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := first(l.ReadStream(reading, "s", 0)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ReadStream while nobody leads = %v", err)
	}
}
