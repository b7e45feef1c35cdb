package kurrent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
)

// answers returns an append that is answered with errors first, and then succeeds.
func answers(list ...error) func(int, *streams.AppendReq_Options, streams.Streams_AppendServer) error {
	return func(n int, _ *streams.AppendReq_Options, s streams.Streams_AppendServer) error {
		if n < len(list) {
			return list[n]
		}
		return s.SendAndClose(took(0, 100))
	}
}

// always is an append that is answered with the same error for ever.
func always(err error) func(int, *streams.AppendReq_Options, streams.Streams_AppendServer) error {
	return func(int, *streams.AppendReq_Options, streams.Streams_AppendServer) error { return err }
}

// The client whose discovery fails is closed for ever. The log gets another one.
func TestDeadClientIsReplaced(t *testing.T) {
	s := serve(t)
	l := dial(t, s, nil)
	s.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := l.Append(ctx, tested("s", 0, 1)); !errors.Is(err, eventlog.ErrUnknownResult) && !errors.Is(err, eventlog.ErrNotExecuted) {
		t.Fatalf("Append to a server that is gone = %v", err)
	}
	s.start(t)
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
		t.Errorf("after the server has come back: %v", err)
	}
}

// While discovery fails, callers that wait in the client wait for ever. Here they wait no
// longer than their contexts, and are no goroutines left behind (TestMain sees to that).
func TestCallersDoNotHang(t *testing.T) {
	s := serve(t)
	l := dial(t, s, nil)
	s.stop()
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			began := time.Now()
			if i%2 == 0 {
				_, err := l.Append(ctx, tested("s", 0, 1))
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Append = %v", err)
				}
			} else {
				for _, err := range l.ReadStream(ctx, "s", 0) {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("ReadStream = %v", err)
					}
				}
			}
			if waited := time.Since(began); waited > time.Second {
				t.Errorf("a caller with 150 ms waited %s", waited)
			}
		})
	}
	group.Wait()
	s.start(t)
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
		t.Errorf("after the server has come back: %v", err)
	}
	if l.clients.hung != 0 {
		t.Errorf("%d calls hang", l.clients.hung)
	}
}

// Discovery does not heed contexts: a server that takes connections and says nothing
// keeps the client busy for seconds. The caller does not wait for it.
func TestSlowDiscovery(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = Open(ctx, "esdb://"+silent.Addr().String()+"?tls=false&maxDiscoverAttempts=1&gossipTimeout=1&discoveryInterval=10", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open = %v", err)
	}
	if waited := time.Since(began); waited > 700*time.Millisecond {
		t.Errorf("a caller with 100 ms waited %s", waited)
	}
}

// Closing a client while calls are in it panics, in goroutines that nobody can recover.
func TestCloseUnderCalls(t *testing.T) {
	for name, answer := range map[string]func(int, *streams.AppendReq_Options, streams.Streams_AppendServer) error{
		"healthy":     answers(),
		"unavailable": always(status.Error(codes.Unavailable, "Server Is Too Busy")),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			for range 20 {
				l := dial(t, s, nil)
				s.on(answer, nil)
				var group sync.WaitGroup
				started := make(chan struct{}, 16)
				for i := range 16 {
					group.Go(func() {
						for n := 0; ; n++ {
							_, err := l.Append(context.Background(), tested(fmt.Sprintf("s%d-%d", i, n), 0, 1))
							if n == 0 {
								started <- struct{}{}
							}
							if errors.Is(err, eventlog.ErrClosed) {
								return
							}
						}
					})
				}
				if name == "healthy" {
					<-started
				} else {
					for appends := 0; appends == 0; appends, _ = s.counts() {
						time.Sleep(time.Millisecond)
					}
				}
				l.Close()
				group.Wait()
			}
		})
	}
}

// Each time that it is told Unavailable, the client forgets to close a connection.
func TestConnectionsDoNotLeak(t *testing.T) {
	s := serve(t)
	l := dial(t, s, &Options{Patience: 30 * time.Second, CallTimeout: time.Second})
	busy := make([]error, 30)
	for i := range busy {
		busy[i] = status.Error(codes.Unavailable, "Server Is Too Busy")
	}
	s.on(answers(busy...), nil)
	var group sync.WaitGroup
	for i := range 8 { // at once, so that some are in a client that is being replaced
		group.Go(func() {
			if _, err := l.Append(t.Context(), tested(fmt.Sprint("s", i), 0, 1)); err != nil {
				t.Errorf("Append = %v", err)
			}
		})
	}
	group.Wait()
	if n := s.accepted.Load(); n < 3 {
		t.Fatalf("only %d connections were made: this shows nothing", n)
	}
	eventually(t, func() bool { return s.open.Load() <= 1 }, func() string {
		return fmt.Sprintf("%d connections are open, of %d", s.open.Load(), s.accepted.Load())
	})
	l.Close()
	eventually(t, func() bool { return s.open.Load() == 0 }, func() string {
		return fmt.Sprintf("%d connections are open after Close", s.open.Load())
	})
}

// eventually waits, for a while, for what other goroutines bring about.
func eventually(t *testing.T, holds func() bool, else_ func() string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(else_())
		}
	}
}

// The client's options about the leader come to nothing on the wire.
func TestLeaderIsRequired(t *testing.T) {
	s := serve(t)
	l := dial(t, s, nil)
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
		t.Fatal(err)
	}
	for _, err := range l.ReadStream(t.Context(), "s", 0) {
		t.Fatal(err)
	}
	s.on(nil, func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		if o.GetSubscription() != nil {
			_ = r.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: "x"}}})
			_ = r.Send(holding("s", 0, 7))
			<-r.Context().Done()
		}
		return nil
	})
	for _, err := range l.ReadAll(t.Context(), eventlog.Start) {
		t.Fatal(err)
	}
	for _, err := range l.Follow(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.headers) < 5 {
		t.Errorf("%d requests", len(s.headers))
	}
	for i, h := range s.headers {
		if got := h.Get("requires-leader"); len(got) != 1 || got[0] != "true" {
			t.Errorf("request %d has requires-leader %v", i, got)
		}
	}
}

// A node that restarts costs the client one failed append. Here the caller sees nothing.
func TestRestartIsNotSeen(t *testing.T) {
	s := serve(t)
	l := dial(t, s, nil)
	for range 3 {
		s.stop()
		s.start(t)
		if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
			t.Errorf("Append after a restart = %v", err)
		}
	}
}

// A client that only reads never finds out that its node has gone.
func TestReadersRecover(t *testing.T) {
	s := serve(t)
	l := dial(t, s, nil)
	s.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for _, err := range l.ReadStream(ctx, "s", 0) {
		if err == nil {
			t.Error("a server that is gone was read")
		}
	}
	s.start(t)
	for _, err := range l.ReadStream(t.Context(), "s", 0) {
		t.Errorf("ReadStream after a restart: %v", err)
	}
}

// The client panics on messages that it does not know.
func TestPanicOfTheClient(t *testing.T) {
	s := serve(t)
	l := dial(t, s, nil)
	s.on(nil, func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		if n == 0 {
			return r.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}})
		}
		return r.Send(holding("s", 0, 7))
	})
	n := 0
	for _, err := range l.ReadStream(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d events", n)
	}
}

// A server that does not answer: every call ends with its own time or its caller's, the
// error is the context's, and what was sent is not known to be there.
func TestContextsAreHeard(t *testing.T) {
	s := serve(t)
	l := dial(t, s, &Options{Patience: 400 * time.Millisecond, CallTimeout: 100 * time.Millisecond})
	silent := func(ctx context.Context) error {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	s.on(func(_ int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
		return silent(r.Context())
	},
		func(_ int, _ *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
			return silent(r.Context())
		})
	reason := errors.New("the caller left")
	leaving := func() context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
		return ctx
	}
	for name, c := range map[string]struct {
		call func(ctx context.Context) error
		own  error // what the log's own patience ends with
	}{
		"Append":     {func(ctx context.Context) error { _, err := l.Append(ctx, tested("s", 0, 1)); return err }, eventlog.ErrUnknownResult},
		"ReadStream": {func(ctx context.Context) error { return first(l.ReadStream(ctx, "s", 0)) }, eventlog.ErrUnavailable},
		"ReadAll":    {func(ctx context.Context) error { return first(l.ReadAll(ctx, 0)) }, eventlog.ErrUnavailable},
		"Follow":     {func(ctx context.Context) error { return first(l.Follow(ctx, 0)) }, nil},
		"Head":       {func(ctx context.Context) error { _, err := l.Head(ctx); return err }, eventlog.ErrUnavailable},
	} {
		began := time.Now()
		err := c.call(leaving())
		if !errors.Is(err, reason) {
			t.Errorf("%s of a caller who left = %v", name, err)
		}
		if name == "Append" && !errors.Is(err, eventlog.ErrUnknownResult) {
			t.Errorf("%s = %v, want an unknown result", name, err)
		}
		if waited := time.Since(began); waited > 300*time.Millisecond {
			t.Errorf("%s took %s", name, waited)
		}
		if c.own == nil {
			continue
		}
		if err := c.call(t.Context()); !errors.Is(err, c.own) {
			t.Errorf("%s = %v, want %v", name, err, c.own)
		}
		if waited := time.Since(began); waited > 2*time.Second {
			t.Errorf("%s took %s", name, waited)
		}
	}
}

func first(sequence func(func(eventlog.Recorded, error) bool)) (err error) {
	sequence(func(_ eventlog.Recorded, e error) bool { err = e; return false })
	return err
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
			s := serve(t)
			l := dial(t, s, nil)
			s.on(func(n int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
				if n > 0 {
					return r.SendAndClose(took(0, 100))
				}
				r.SetTrailer(c.trail)
				return c.answer
			}, nil)
			_, err := l.Append(t.Context(), tested("s", 0, 1))
			var damaged *eventlog.Damaged
			var refused *Refused
			appends, _ := s.counts()
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
	s := serve(t)
	l := dial(t, s, nil)
	s.on(answers(status.Error(codes.Aborted, "timeout"), status.Error(codes.PermissionDenied, "denied")), nil)
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
		"to a stream that was deleted":       {took(5, 100), 0},
		"a repetition that cannot be read":   {took(0, 0), 0},
		"one further than stated":            {took(2, 100), 1},
		"a success that says nothing at all": {&streams.AppendResp{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			l := dial(t, s, nil)
			s.on(func(_ int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
				return r.SendAndClose(c.answer)
			},
				func(_ int, _ *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
					return r.Send(holding("s", 0, 7))
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
	s := serve(t)
	l := dial(t, s, nil)
	for _, at := range []uint64{0, 1, 2, 1 << 40} {
		var got *streams.AppendReq_Options
		s.on(func(_ int, o *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
			got = o
			return r.SendAndClose(took(at, 100))
		}, func(_ int, _ *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
			return r.Send(holding("s", 0, 7))
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
	s := serve(t)
	l := dial(t, s, nil)
	conflict := func(read func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error) *eventlog.Conflict {
		t.Helper()
		s.on(func(_ int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
			return r.SendAndClose(lost())
		}, read)
		_, err := l.Append(t.Context(), tested("s", 0, 1))
		var c *eventlog.Conflict
		if !errors.As(err, &c) {
			t.Fatalf("Append = %v, want a conflict", err)
		}
		return c
	}
	absent := func(o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		return r.Send(notFound(&streams.ReadReq{Options: o}))
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
		return r.Send(holding("s", 0, 7))
	}); c.Actual == nil || *c.Actual != 1 {
		t.Errorf("the stream's length is said to be %v", c.Actual)
	}
}

// A subscription that drops is taken up again where it was, whatever the server sends
// twice.
func TestFollowGoesOn(t *testing.T) {
	s := serve(t)
	l := dial(t, s, nil)
	s.on(nil, func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		if n%3 == 1 {
			return status.Error(codes.Unavailable, "not now") // not even confirmed
		}
		confirm := &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: "x"}
		_ = r.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{Confirmation: confirm}})
		next := o.GetAll().GetPosition().GetCommitPosition() / 10 // event r is at position 10(r+1)
		if next > 0 {
			next-- // once more
		}
		for revision := next; revision < next+3; revision++ {
			for range 2 { // everything twice
				_ = r.Send(holding("s", revision, 10*(revision+1)))
				_ = r.Send(holding("$stats", revision, 10*(revision+1)+1))
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
	s := serve(t)
	l := dial(t, s, &Options{Patience: 20 * time.Millisecond})
	s.stop()
	if err := first(l.Follow(t.Context(), eventlog.Start)); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("Follow = %v, want that it cannot be reached", err)
	}
	s.start(t)
	s.on(nil, func(int, *streams.ReadReq_Options, streams.Streams_ReadServer) error {
		return status.Error(codes.PermissionDenied, "denied")
	})
	if err := first(l.Follow(t.Context(), eventlog.Start)); !errors.Is(err, eventlog.ErrForbidden) {
		t.Errorf("Follow without the right to = %v", err)
	}
}
