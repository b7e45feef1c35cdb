package kurrent

import (
	"errors"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// A subscription that drops is taken up again where it was, whatever the server sends
// twice.
func TestFollowGoesOn(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	s.On(nil, func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		if n%3 == 1 {
			return status.Error(codes.Unavailable, "not now") // not even confirmed
		}
		_ = r.Send(kurrentnode.Confirmed())
		next := o.GetAll().GetPosition().GetCommitPosition() / 10 // event r is at position 10(r+1)
		if next > 0 {
			next-- // once more
		}
		for revision := next; revision < next+3; revision++ {
			for range 2 { // everything twice
				_ = r.Send(kurrentnode.Holding("s", revision, 10*(revision+1)))
				_ = r.Send(kurrentnode.Holding("$stats", revision, 10*(revision+1)+1))
			}
		}
		if n%2 == 0 {
			return nil
		}
		return status.Error(codes.Aborted, "dropped")
	})
	want := uint64(0)
	for r, err := range l.Follow(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Revision != want || r.Stream != "s" {
			t.Fatalf("revision %d of %s where %d should be", r.Revision, r.Stream, want)
		}
		if want++; want == 12 {
			break
		}
	}
}

// A follower whose server stays away is told in the end.
func TestFollowGivesUp(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, &Options{Patience: 20 * time.Millisecond})
	s.Stop()
	if err := first(l.Follow(t.Context(), eventlog.Start)); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("Follow = %v, want that it cannot be reached", err)
	}
	s.Listen(t)
	s.On(nil, func(int, *streams.ReadReq_Options, streams.Streams_ReadServer) error {
		return status.Error(codes.PermissionDenied, "denied")
	})
	if err := first(l.Follow(t.Context(), eventlog.Start)); !errors.Is(err, eventlog.ErrForbidden) {
		t.Errorf("Follow without the right to = %v", err)
	}
}
