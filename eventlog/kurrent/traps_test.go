package kurrent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// The client whose discovery fails is closed for ever. The log gets another one.
func TestDeadClientIsReplaced(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	s.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := l.Append(ctx, tested("s", 0, 1)); !errors.Is(err, eventlog.ErrUnknownResult) && !errors.Is(err, eventlog.ErrNotExecuted) {
		t.Fatalf("Append to a server that is gone = %v", err)
	}
	s.Listen(t)
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
		t.Errorf("after the server has come back: %v", err)
	}
}

// Between the client's last words and its closing, nobody may ask it for a connection: it
// would look for another node, and forget the one that it has. Whoever asks when they are
// spoken is waited for.
func TestLastWords(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	c, err := l.clients.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.clients.release(c)
	asking, done, ok := l.clients.ask(t.Context(), c)
	if !ok {
		t.Fatal("nobody may ask a client that works")
	}
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		l.clients.hear(c)(esdb.LogError, lastWords, status.Error(codes.Unavailable, "gone"))
	}()
	<-c.given.Done()
	if _, _, ok := l.clients.ask(t.Context(), c); ok {
		t.Error("a client that is spent may be asked")
	}
	select {
	case <-acted:
		t.Error("the client acts on its last words while it is asked for its connection")
	case <-time.After(20 * time.Millisecond):
	}
	asking.Deadline() // what the client does with the connection in hand
	<-acted
	done()
	// Other errors are not its last words.
	next, err := l.clients.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.clients.release(next)
	l.clients.hear(next)(esdb.LogError, lastWords, status.Error(codes.Aborted, "timeout"))
	l.clients.hear(next)(esdb.LogInfo, "discovery attempt %v/%v", []any{1, 2})
	if next == c || next.given.Err() != nil {
		t.Error("the client was given up for nothing")
	}
}

// Closing a client while calls are in it panics, in goroutines that nobody can recover.
func TestCloseUnderCalls(t *testing.T) {
	for name, answer := range map[string]func(int, *streams.AppendReq_Options, streams.Streams_AppendServer) error{
		"healthy":     answers(),
		"unavailable": always(status.Error(codes.Unavailable, "Server Is Too Busy")),
	} {
		t.Run(name, func(t *testing.T) {
			s := kurrentnode.Start(t)
			for range 20 {
				options := brief()
				options.Logger = slog.New(&watch{t: t, never: "panic"})
				l := dial(t, s, options)
				s.On(answer, nil)
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
					for appends := 0; appends == 0; appends, _ = s.Counts() {
						time.Sleep(time.Millisecond)
					}
				}
				l.Close()
				group.Wait()
			}
		})
	}
}

// watch is a log handler that fails the test when something is logged that must not be.
type watch struct {
	slog.Handler
	t     *testing.T
	never string
}

func (w *watch) Enabled(context.Context, slog.Level) bool { return true }

func (w *watch) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, w.never) {
		w.t.Error(r.Message)
	}
	return nil
}

// Each time that it is told Unavailable, the client forgets to close a connection.
func TestConnectionsDoNotLeak(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, &Options{Patience: 30 * time.Second, CallTimeout: time.Second})
	busy := make([]error, 300)
	for i := range busy {
		busy[i] = status.Error(codes.Unavailable, "Server Is Too Busy")
	}
	s.On(answers(busy...), nil)
	var group sync.WaitGroup
	for i := range 64 { // at once, so that some are in a client that is being replaced
		group.Go(func() {
			if _, err := l.Append(t.Context(), tested(fmt.Sprint("s", i), 0, 1)); err != nil {
				t.Errorf("Append = %v", err)
			}
		})
	}
	group.Wait()
	if _, accepted := s.Connections(); accepted < 3 {
		t.Fatalf("only %d connections were made: this shows nothing", accepted)
	}
	open := func() int { n, _ := s.Connections(); return n }
	eventually(t, func() bool { return open() <= 1 }, func() string { return fmt.Sprintf("%d connections are open", open()) })
	l.Close()
	eventually(t, func() bool { return open() == 0 }, func() string { return fmt.Sprintf("%d connections are open after Close", open()) })
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
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
		t.Fatal(err)
	}
	for _, err := range l.ReadStream(t.Context(), "s", 0) {
		t.Fatal(err)
	}
	s.On(nil, func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		if o.GetSubscription() != nil {
			_ = r.Send(kurrentnode.Confirmed())
			_ = r.Send(kurrentnode.Holding("s", 0, 7))
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
	headers := s.Headers()
	if len(headers) < 5 {
		t.Errorf("%d requests", len(headers))
	}
	for i, h := range headers {
		if got := h.Get("requires-leader"); len(got) != 1 || got[0] != "true" {
			t.Errorf("request %d has requires-leader %v", i, got)
		}
	}
}

// A node that restarts costs the client one failed append. Here the caller sees nothing.
func TestRestartIsNotSeen(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	for range 3 {
		s.Stop()
		s.Listen(t)
		if _, err := l.Append(t.Context(), tested("s", 0, 1)); err != nil {
			t.Errorf("Append after a restart = %v", err)
		}
	}
}

// A client that only reads never finds out that its node has gone and another leads.
func TestReadersFindTheNewLeader(t *testing.T) {
	l, a, b, lead := cluster(t, brief())
	lead(b)
	a.Stop()
	// Once the client's connection has noticed, readings do not even start, which is what
	// the client makes nothing of. Nobody tells when that is.
	time.Sleep(50 * time.Millisecond)
	b.On(nil, nil)
	if err := first(l.ReadStream(t.Context(), "s", 0)); err != nil {
		t.Errorf("ReadStream = %v", err)
	}
	if _, reads := b.Counts(); reads == 0 {
		t.Error("the new leader was not asked")
	}
}

// The client panics on messages that it does not know.
func TestPanicOfTheClient(t *testing.T) {
	s := kurrentnode.Start(t)
	l := dial(t, s, nil)
	s.On(nil, func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		if n == 0 {
			return r.Send(kurrentnode.CaughtUp())
		}
		return r.Send(kurrentnode.Holding("s", 0, 7))
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
