package kurrentnode

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
)

// call is an append's call, as far as deciding it needs one.
type call struct {
	grpc.ServerStream
	ctx     context.Context
	decided func() // is called once the append is decided and is to wait; may be nil
}

func (c call) Context() context.Context {
	if c.decided != nil {
		c.decided()
	}
	return c.ctx
}

func proposal(stream string, id int64) (*streams.AppendReq_Options, []*streams.AppendReq_ProposedMessage) {
	o := &streams.AppendReq_Options{
		StreamIdentifier:       &shared.StreamIdentifier{StreamName: []byte(stream)},
		ExpectedStreamRevision: &streams.AppendReq_Options_NoStream{NoStream: &shared.Empty{}},
	}
	unique := &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{LeastSignificantBits: id}}}
	return o, []*streams.AppendReq_ProposedMessage{{Id: unique, Metadata: map[string]string{"type": "Tested"}}}
}

// An election may fall between the moment when a node looks who leads and the one when it
// decides an append. The append is cancelled then, and nothing is written: it would be
// acknowledged when the next leader's event comes to be at its place.
func TestElectionBeforeTheDecision(t *testing.T) {
	c := Gather(t, 3)
	old := c.Leader()
	c.Cut(old)
	leader := c.Elect(t) // the append has found that old leads before this
	old.Streams.CommitTimeout = time.Minute
	answered := make(chan error, 1)
	go func() {
		o, proposed := proposal("lost", 1)
		_, err := old.Streams.append(call{ctx: t.Context()}, o, proposed)
		answered <- err
	}()
	for old.Streams.Len("lost") == 0 && len(answered) == 0 {
		time.Sleep(time.Millisecond)
	}
	o, proposed := proposal("other", 2)
	if _, err := leader.Streams.append(call{ctx: t.Context()}, o, proposed); err != nil {
		t.Fatal(err)
	}
	c.Mend(old)
	if err := <-answered; err == nil {
		t.Errorf("it was acknowledged; the leader has %d events of it", leader.Streams.Len("lost"))
	}
}

// The repetition of an append that most nodes do not have is dropped: it gets no answer when
// they have it, either.
func TestDroppedRepetition(t *testing.T) {
	c := Gather(t, 3)
	k := c.Leader().Streams
	c.Cut(c.Nodes[1:]...)
	o, proposed := proposal("s", 1)
	if _, err := k.append(call{ctx: t.Context()}, o, proposed); !errors.Is(err, errCommitTimeout) {
		t.Fatalf("an append that is not replicated = %v", err)
	}
	mend := func() { c.Mend(c.Nodes[1:]...) }
	if _, err := k.append(call{ctx: t.Context(), decided: mend}, o, proposed); !errors.Is(err, errCommitTimeout) {
		t.Errorf("its repetition, replicated while it waits = %v", err)
	}
	if _, err := k.append(call{ctx: t.Context()}, o, proposed); err != nil {
		t.Errorf("its repetition after that = %v", err)
	}
}
