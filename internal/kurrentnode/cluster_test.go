package kurrentnode_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"holdfast/internal/kurrentnode"
)

// on returns a client of one node, and a stream that it is to work on.
func on(t *testing.T, n *kurrentnode.Node, stream string) *subject {
	t.Helper()
	return &subject{Client: dial(t, n.URL()), name: stream, ids: map[int]uuid.UUID{}}
}

// expect fails the test unless an append was answered with a code; -1 is success.
func expect(t *testing.T, what string, want esdb.ErrorCode, err error) {
	t.Helper()
	if err == nil && want != -1 || err != nil && codeOf(err) != want {
		t.Errorf("%s: %v, want code %v", what, err, want)
	}
}

// holds fails the test unless a stream can be read with so many events.
func (x *subject) holds(t *testing.T, what string, n int) {
	t.Helper()
	revisions, _, err := x.read(t)
	if absent := codeOf(err) == esdb.ErrorCodeResourceNotFound; len(revisions) != n || err != nil && !absent || absent != (n == 0) {
		t.Errorf("%s: read %v, %v; want %d events", what, revisions, err, n)
	}
}

// inAll fails the test unless the whole log can be read with so many events.
func (x *subject) inAll(t *testing.T, what string, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	reading, err := x.ReadAll(ctx, esdb.ReadAllOptions{From: esdb.Start{}}, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	n := 0
	for _, err = reading.Recv(); err == nil; _, err = reading.Recv() {
		n++
	}
	if !errors.Is(err, io.EOF) || n != want {
		t.Errorf("%s: the whole log has %d events, %v; want %d", what, n, err, want)
	}
}

const success = esdb.ErrorCode(-1)

// An append that most nodes do not have yet conflicts with others, and cannot be read; its
// repetition gets no answer before most nodes have it.
func TestUnreplicated(t *testing.T) {
	c := kurrentnode.Gather(t, 3)
	a := c.Leader()
	x, other := on(t, a, "s"), on(t, a, "s")
	c.Cut(c.Nodes[1], c.Nodes[2])
	_, err := x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "an append that is not replicated", esdb.ErrorAborted, err)
	_, err = other.append(t, esdb.NoStream{}, "", 0)
	expect(t, "another's append", esdb.ErrorCodeWrongExpectedVersion, err)
	x.holds(t, "before it is replicated", 0)
	x.inAll(t, "before it is replicated", 0)
	_, err = x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "its repetition", esdb.ErrorAborted, err)
	c.Mend(c.Nodes[1])
	x.holds(t, "once two of three nodes have it", 1)
	x.inAll(t, "once two of three nodes have it", 1)
	_, err = x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "its repetition then", success, err)
	if n := a.Streams.Len("s"); n != 1 {
		t.Errorf("%d events were written", n)
	}
}

// What most nodes do not have is lost when one of them comes to lead, and stays lost.
func TestLostTail(t *testing.T) {
	c := kurrentnode.Gather(t, 3)
	a := c.Leader()
	x := on(t, a, "s")
	_, err := x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "an append that is replicated", success, err)
	c.Cut(a)
	_, err = x.append(t, esdb.Revision(0), "", 1)
	expect(t, "an append to a leader that is cut off", esdb.ErrorAborted, err)
	b := c.Elect(t)
	if b == a {
		t.Fatal("a node that is cut off was elected")
	}
	next := on(t, b, "s")
	next.holds(t, "on the next leader", 1)
	_, err = next.append(t, esdb.Revision(0), "", 2)
	expect(t, "another's append", success, err)
	c.Mend(a)
	if a.Streams.Len("s") != 2 || b.Streams.Len("s") != 2 {
		t.Errorf("the nodes have %d and %d events", a.Streams.Len("s"), b.Streams.Len("s"))
	}
	if a.Streams.Size() != b.Streams.Size() {
		t.Errorf("the nodes' logs have %d and %d events", a.Streams.Size(), b.Streams.Size())
	}
	_, err = x.append(t, esdb.Revision(0), "", 1) // handed on to b
	expect(t, "the repetition of what was lost", esdb.ErrorCodeWrongExpectedVersion, err)
	on(t, a, "s").holds(t, "on the old leader", 2)
}

// What most nodes do not have may also survive: when the node that has it leads again.
func TestTailThatSurvives(t *testing.T) {
	c := kurrentnode.Gather(t, 3)
	a := c.Leader()
	x := on(t, a, "s")
	c.Cut(c.Nodes[1], c.Nodes[2])
	_, err := x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "an append that is not replicated", esdb.ErrorAborted, err)
	c.Mend(c.Nodes[1])
	if c.Elect(t) != a {
		t.Error("the node with less was elected")
	}
	x.holds(t, "after the election", 1)
}

// A leader that comes back brings what it has to most nodes. That is acknowledged then, and
// a node with the end of a leader in between does not get to lead any more.
func TestAcknowledgedByALeaderThatCameBack(t *testing.T) {
	c := kurrentnode.Gather(t, 3)
	first, x := c.Leader(), on(t, c.Leader(), "s")
	c.Cut(c.Nodes[1:]...)
	_, err := x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "an append to the first leader alone", esdb.ErrorAborted, err)

	c.Cut(first)
	c.Mend(c.Nodes[1:]...)
	second := c.ElectAlone(t)
	_, err = on(t, second, "s").append(t, esdb.NoStream{}, "", 0)
	expect(t, "another to the second leader alone", esdb.ErrorAborted, err)

	c.Cut(second)
	for _, n := range c.Nodes {
		if n != second {
			c.Mend(n)
		}
	}
	if c.Elect(t) != first {
		t.Fatal("the first node does not lead again: this shows nothing")
	}
	_, err = x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "the repetition, once most nodes have it", success, err)

	c.Cut(first)
	c.Mend(second)
	last := c.Elect(t)
	if last == second {
		t.Error("the node leads that has not what was acknowledged")
	}
	_, err = on(t, last, "s").append(t, esdb.NoStream{}, "", 1)
	expect(t, "a later append", esdb.ErrorCodeWrongExpectedVersion, err)
	_, err = x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "the repetition, once more", success, err)
}

// A follower's own streams may lag behind. It refuses who wants the leader, and hands on
// the appends of those who do not say.
func TestFollower(t *testing.T) {
	c := kurrentnode.Gather(t, 3)
	follower := c.Nodes[2]
	c.Cut(follower)
	x, stale := on(t, c.Leader(), "s"), on(t, follower, "s")
	_, err := x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "an append", success, err)
	x.holds(t, "on the leader", 1)
	stale.holds(t, "on the follower", 0)
	_, err = stale.append(t, esdb.Revision(0), "", 1)
	expect(t, "an append that is handed on", success, err)
	x.holds(t, "after that", 2)

	strict := metadata.AppendToOutgoingContext(t.Context(), "requires-leader", "true")
	reading, err := stale.ReadStream(strict, "s", esdb.ReadStreamOptions{From: esdb.Start{}}, 1)
	if err == nil {
		defer reading.Close()
		_, err = reading.Recv()
	}
	expect(t, "a reading that wants the leader", esdb.ErrorCodeNotLeader, err)
	stale.holds(t, "after the client has turned to the leader", 2)
}

// Between two elections, nobody is served who wants the leader.
func TestNoLeader(t *testing.T) {
	c := kurrentnode.Gather(t, 3)
	x := on(t, c.Leader(), "s")
	c.Depose()
	_, err := x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "an append without a leader", esdb.ErrorUnavailable, err)
	c.Elect(t)
	_, err = x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "an append after the election", success, err)
}

// An append that waits when its leader is deposed is cancelled, and may be there.
func TestDeposedUnderAppend(t *testing.T) {
	c := kurrentnode.Gather(t, 3)
	a := c.Leader()
	a.Streams.CommitTimeout = time.Minute
	x := on(t, a, "s")
	c.Cut(c.Nodes[1], c.Nodes[2])
	a.Before(func(context.Context, int) error {
		go func() {
			for a.Streams.Len("s") == 0 {
				time.Sleep(time.Millisecond)
			}
			c.Depose()
		}()
		return nil
	})
	_, err := x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "an append whose leader is deposed", esdb.ErrorAborted, err)
	if n := a.Streams.Len("s"); n != 1 {
		t.Errorf("%d events are there", n)
	}
}

// The ids that are looked up where anything is expected are in a node's memory alone.
func TestAnythingIsNoIdempotency(t *testing.T) {
	n := kurrentnode.Keep(t)
	x := on(t, n, "s")
	for i, restart := range []bool{false, false, true} {
		if restart {
			n.Stop()
			n.Listen(t)
			ids := x.ids
			x = on(t, n, "s") // the client that was there may or may not fail once
			x.ids = ids
		}
		_, err := x.append(t, esdb.Any{}, "", 0)
		expect(t, "an append", success, err)
		if want := []uint64{1, 1, 2}[i]; n.Streams.Len("s") != want {
			t.Errorf("append %d: %d events, want %d", i, n.Streams.Len("s"), want)
		}
	}
}

// A server goes on with an append whose client has left; an error before it is decided
// leaves nothing.
func TestBefore(t *testing.T) {
	n := kurrentnode.Keep(t)
	x := on(t, n, "s")
	n.Before(func(context.Context, int) error { return status.Error(codes.Unavailable, "Server Is Too Busy") })
	_, err := x.append(t, esdb.NoStream{}, "", 0)
	expect(t, "an append to a busy server", esdb.ErrorUnavailable, err)
	if n.Streams.Len("s") != 0 {
		t.Error("it was written")
	}
	left := make(chan struct{})
	n.Before(func(context.Context, int) error { <-left; return nil })
	soon := 50 * time.Millisecond
	_, err = x.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}, Deadline: &soon},
		esdb.EventData{EventID: uuid.New(), EventType: "Tested"})
	expect(t, "an append that takes too long", esdb.ErrorCodeDeadlineExceeded, err)
	close(left)
	for deadline := time.Now().Add(5 * time.Second); n.Streams.Len("s") == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	x.holds(t, "after its client has left", 1)
}
