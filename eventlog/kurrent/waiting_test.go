package kurrent

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// While discovery fails, callers that wait in the client wait for ever. Here they wait no
// longer than their contexts, and are no goroutines left behind (TestMain sees to that).
func TestCallersDoNotHang(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	for range 10 {
		s.Stop()
		var group sync.WaitGroup
		for i := range 64 {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				began := time.Now()
				var err error
				if i%2 == 0 {
					_, err = l.Append(ctx, tested("s", 0, 1))
				} else {
					err = first(l.ReadStream(ctx, "s", 0))
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a call to a server that is gone = %v", err)
				}
				if waited := time.Since(began); waited > time.Second {
					t.Errorf("a caller with 100 ms waited %s", waited)
				}
			})
		}
		group.Wait()
		s.Listen(t)
		if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
			t.Errorf("after the server has come back: %v", err)
		}
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

// While the client turns to a leader that does not answer, it is deaf to everybody. The
// caller does not wait for it, and the next one gets another client.
func TestDeafClient(t *testing.T) {
	s, deaf := kurrentnode.Start(t), kurrentnode.Start(t)
	heard := make(chan struct{})
	deaf.Deafen(heard)
	l := dial(t, s, nil)
	s.On(kurrentnode.Elsewhere(deaf), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := l.Append(ctx, tested("s", 0, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append = %v", err)
	}
	if waited := time.Since(began); waited > 700*time.Millisecond {
		t.Errorf("a caller with 200 ms waited %s", waited)
	}
	s.On(answers(), nil)
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
		t.Errorf("the next append: %v", err)
	}
	if n, _ := deaf.Counts(); n != 0 {
		t.Errorf("the deaf node was given %d appends", n)
	}
	close(heard)
	eventually(t, func() bool {
		l.clients.mu.Lock()
		defer l.clients.mu.Unlock()
		return l.clients.hung == 0
	}, func() string { return "the call that was left to itself has not come back" })
}

// There is a limit to how many calls are left to themselves.
func TestHungCallsAreBounded(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, &Options{Patience: 50 * time.Millisecond})
	for range maxHung {
		defer l.clients.abandon()()
	}
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); !errors.Is(err, eventlog.ErrNotExecuted) || !strings.Contains(err.Error(), "restart the program") {
		t.Errorf("Append = %v", err)
	}
}

// A leader that says nothing any more may have been succeeded.
func TestSilentLeader(t *testing.T) {
	l, a, b, lead := cluster(t, &Options{CallTimeout: 200 * time.Millisecond, Patience: 2 * time.Second})
	lead(b)
	a.On(func(_ int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
		<-r.Context().Done()
		return nil
	}, nil)
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
		t.Errorf("Append = %v", err)
	}
	if appends, _ := b.Counts(); appends != 1 {
		t.Errorf("the new leader was given %d appends", appends)
	}
}

// A server that does not answer: every call ends with its own time or its caller's, the
// error is the context's, and what was sent is not known to be there.
func TestContextsAreHeard(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, &Options{Patience: 400 * time.Millisecond, CallTimeout: 100 * time.Millisecond})
	silent := func(ctx context.Context) error {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	s.On(func(_ int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
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
