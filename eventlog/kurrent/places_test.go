package kurrent

import (
	"errors"
	"math"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// A server that is asked to read from where no event begins says so, in one way or the
// other. Behind the end of this log there is nothing all the same; elsewhere it is an error.
func TestPositionsBetweenEvents(t *testing.T) {
	for _, code := range []codes.Code{codes.InvalidArgument, codes.Unknown} {
		t.Run(code.String(), func(t *testing.T) {
			s := kurrentnode.Keep(t)
			options := brief()
			options.Patience = 100e6
			l := dial(t, s, options)
			appended(t, l, tested("s", 0, 3))
			head := last(t, l, "s")
			for range short + 1 { // events of the server's own, behind ours
				s.Streams.Put("$stats-0", "Stats", "{}")
			}
			s.On(nil, func(_ int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
				at := o.GetAll().GetPosition().GetCommitPosition()
				if o.GetReadDirection() == streams.ReadReq_Options_Forwards && at%2 == 1 {
					return status.Error(code, "Trying to read from an invalid position.")
				}
				return s.Streams.Read(o, r)
			})
			for _, beyond := range []eventlog.Position{head + 1, head + 301} {
				for r, err := range l.ReadAll(t.Context(), beyond) {
					t.Errorf("ReadAll after %d, behind the end = %v, %v", beyond, r, err)
				}
			}
			err := first(l.ReadAll(t.Context(), head-1))
			var r *Refused
			if code == codes.InvalidArgument && !errors.As(err, &r) || code == codes.Unknown && !errors.Is(err, eventlog.ErrUnavailable) {
				t.Errorf("ReadAll from between two events = %v", err)
			}
			if got, err := l.Head(t.Context()); got != head || err != nil {
				t.Errorf("Head = %d, %v, want %d", got, err, head)
			}
		})
	}
}

// The last number that the server takes for a revision stands for a stream that was
// deleted: it is never asked for, so that no server gets to count beyond it.
func TestLastRevision(t *testing.T) {
	s := kurrentnode.Keep(t)
	l := dial(t, s, nil)
	appended(t, l, tested("s", 0, 3))
	s.On(nil, func(_ int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		if o.GetStream().GetRevision() >= math.MaxInt64 {
			t.Errorf("the server is asked for revision %d", o.GetStream().GetRevision())
		}
		return s.Streams.Read(o, r)
	})
	for _, from := range []uint64{math.MaxInt64 - 1, math.MaxInt64, math.MaxUint64} {
		for r, err := range l.ReadStream(t.Context(), "s", from) {
			t.Errorf("ReadStream from %d = %v, %v", from, r, err)
		}
	}
}
