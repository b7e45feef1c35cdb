package kurrent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// answers returns an append that is answered with errors first, and then succeeds.
func answers(list ...error) func(int, *streams.AppendReq_Options, streams.Streams_AppendServer) error {
	return func(n int, _ *streams.AppendReq_Options, s streams.Streams_AppendServer) error {
		if n < len(list) {
			return list[n]
		}
		return s.SendAndClose(kurrentnode.Took(0, 100))
	}
}

// always is an append that is answered with the same error for ever.
func always(err error) func(int, *streams.AppendReq_Options, streams.Streams_AppendServer) error {
	return func(int, *streams.AppendReq_Options, streams.Streams_AppendServer) error { return err }
}

// A node that does not lead names the one that does, and the append goes there.
func TestNotLeader(t *testing.T) {
	follower, other := kurrentnode.Start(t), kurrentnode.Start(t)
	l := dial(t, follower, nil)
	follower.On(kurrentnode.Elsewhere(other), nil)
	for range 3 {
		if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
			t.Errorf("Append = %v", err)
		}
	}
	asked, _ := follower.Counts()
	if led, _ := other.Counts(); asked != 1 || led != 3 {
		t.Errorf("the follower was asked %d times, the leader %d times", asked, led)
	}
}

// What an append comes to, for everything that the server may say.
func TestAppendErrors(t *testing.T) {
	with := func(code codes.Code) error { return status.Error(code, "the server said so") }
	for name, c := range map[string]struct {
		answer error
		trail  metadata.MD
		want   error // nil: it is tried again, and goes through
		fatal  bool  // a Refused, after one try
	}{
		"aborted":             {answer: with(codes.Aborted)},
		"unavailable":         {answer: with(codes.Unavailable)},
		"deadline":            {answer: with(codes.DeadlineExceeded)},
		"cancelled":           {answer: with(codes.Canceled)},
		"internal":            {answer: with(codes.Internal)},
		"resource exhausted":  {answer: with(codes.ResourceExhausted)},
		"failed precondition": {answer: with(codes.FailedPrecondition)},
		"unknown":             {answer: with(codes.Unknown)},
		"not found":           {answer: with(codes.NotFound)},
		"already exists":      {answer: with(codes.AlreadyExists)},
		"invalid":             {answer: with(codes.InvalidArgument), fatal: true},
		"denied":              {answer: with(codes.PermissionDenied), fatal: true, want: eventlog.ErrForbidden},
		"unauthenticated":     {answer: with(codes.Unauthenticated), fatal: true, want: eventlog.ErrForbidden},
		"unimplemented":       {answer: with(codes.Unimplemented), fatal: true},
		"tombstone":           {answer: with(codes.FailedPrecondition), trail: metadata.Pairs("exception", "stream-deleted", "stream-name", "s"), want: &eventlog.Damaged{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := kurrentnode.Start(t)
			l := dial(t, s, nil)
			s.On(func(n int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
				if n > 0 {
					return r.SendAndClose(kurrentnode.Took(0, 100))
				}
				r.SetTrailer(c.trail)
				return c.answer
			}, nil)
			_, err := l.Append(t.Context(), tested("s", 0, 1))
			var damaged *eventlog.Damaged
			var refused *Refused
			appends, _ := s.Counts()
			switch {
			case c.fatal:
				if !errors.As(err, &refused) || appends != 1 || c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("Append = %v after %d tries, want a Refused after one", err, appends)
				}
			case c.want != nil:
				if !errors.As(err, &damaged) || appends != 1 {
					t.Errorf("Append = %v after %d tries, want a Damaged after one", err, appends)
				}
			case err != nil || appends != 2:
				t.Errorf("Append = %v after %d tries, want success after two", err, appends)
			}
		})
	}
}

// A refusal after a try that may have gone through does not say that nothing was written.
func TestRefusalAfterUnknown(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	s.On(answers(status.Error(codes.Aborted, "timeout"), status.Error(codes.PermissionDenied, "denied")), nil)
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); !errors.Is(err, eventlog.ErrUnknownResult) {
		t.Errorf("Append = %v, want an unknown result", err)
	}
}

// The server accepts what a ledger must not: see what accepted says.
func TestAcceptedIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		answer *streams.AppendResp
		at     uint64
	}{
		"to a stream that was deleted":       {kurrentnode.Took(5, 100), 0},
		"a repetition that cannot be read":   {kurrentnode.Took(0, 0), 0},
		"one further than stated":            {kurrentnode.Took(2, 100), 1},
		"a success that says nothing at all": {&streams.AppendResp{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := kurrentnode.Start(t)
			l := dial(t, s, nil)
			s.On(func(_ int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
				return r.SendAndClose(c.answer)
			},
				func(_ int, _ *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
					return r.Send(kurrentnode.Holding("s", 0, 7))
				})
			_, err := l.Append(t.Context(), tested("s", c.at, 1))
			var damaged *eventlog.Damaged
			if !errors.As(err, &damaged) || damaged.Stream != "s" || damaged.Kind != eventlog.Truncated {
				t.Errorf("Append = %v, want a Damaged", err)
			}
		})
	}
}

// Every append says which revision it wants, and there is no way not to.
func TestRevisionsAreStated(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	for _, at := range []uint64{0, 1, 2, 1 << 40} {
		var got *streams.AppendReq_Options
		s.On(func(_ int, o *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
			got = o
			return r.SendAndClose(kurrentnode.Took(at, 100))
		}, func(_ int, _ *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
			return r.Send(kurrentnode.Holding("s", 0, 7))
		})
		if _, err := l.Append(t.Context(), tested("s", at, 1)); err != nil {
			t.Fatal(err)
		}
		switch {
		case at == 0 && got.GetNoStream() == nil, at > 0 && got.GetRevision() != at-1, got.GetAny() != nil, got.GetStreamExists() != nil:
			t.Errorf("an append at %d expects %v", at, got.GetExpectedStreamRevision())
		}
	}
	if strings.Contains(fmt.Sprintf("%T %T", expected(0), expected(1)), "Any") {
		t.Error("any")
	}
}

// A conflict with what cannot be read: the stream is read again for a while, and then the
// conflict says that its length is not known.
func TestConflictThatCannotBeRead(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	conflict := func(read func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error) *eventlog.Conflict {
		t.Helper()
		s.On(func(_ int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
			return r.SendAndClose(kurrentnode.Lost())
		}, read)
		_, err := l.Append(t.Context(), tested("s", 0, 1))
		var c *eventlog.Conflict
		if !errors.As(err, &c) {
			t.Fatalf("Append = %v, want a conflict", err)
		}
		return c
	}
	absent := func(o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		return r.Send(kurrentnode.NotFound(o))
	}
	began := time.Now()
	if c := conflict(func(_ int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error { return absent(o, r) }); c.Actual != nil {
		t.Errorf("the stream is said to have %d events", *c.Actual)
	}
	if waited := time.Since(began); waited < 100*time.Millisecond || waited > time.Second {
		t.Errorf("it waited %s, not 100 ms", waited)
	}
	// Soon it can be read, and its real length is told: not the one in the server's text.
	if c := conflict(func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		if n < 4 {
			return absent(o, r)
		}
		return r.Send(kurrentnode.Holding("s", 0, 7))
	}); c.Actual == nil || *c.Actual != 1 {
		t.Errorf("the stream's length is said to be %v", c.Actual)
	}
}
