package kurrent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

// client is one of the library's clients, with what is needed to be rid of it again.
type client struct {
	*esdb.Client
	// given ends when the client is given up, which ends the subscriptions on it.
	given  context.Context
	giveUp context.CancelCauseFunc
	// connected is closed once the client has found its node, or has failed to; err
	// says why then.
	connected chan struct{}
	err       error
	// door holds a token while a call asks the client for its connection.
	door chan struct{}

	// calls is how many goroutines are inside the client, and spent that it takes no
	// more of them; both are the supervisor's.
	calls int
	spent bool
}

// supervisor hands out a client that works, and replaces one that does not.
//
// Inside a client, one goroutine looks for a node, and hands out the connection to it.
// While it looks it heeds no context; if it finds nothing it ends, and whoever asks it for
// the connection then waits for ever. When it is told that the node is unavailable it
// looks again, and forgets to close the connection that it had. And closing a client
// under a call panics.
//
// So a client looks once: while it does, callers wait here, where their contexts are
// heard. At the first word that its node is unavailable it is spent: nobody asks it for a
// connection any more, it does not look again, and it is closed, with its connection, when
// the last call has left it.
type supervisor struct {
	dial   func(esdb.LoggingFunc) (*esdb.Client, error)
	logger *slog.Logger
	// closing ends when the log begins to close: nobody waits for a connection then.
	closing context.Context

	mu      sync.Mutex
	current *client
	closed  bool
	hung    int
}

// maxHung is how many calls may be left to themselves inside clients that do not come
// back. It bounds what a broken client can cost; beyond it no call is made.
const maxHung = 1024

var (
	errTooManyHung = errors.New("kurrent: too many calls hang inside the client; restart the program")
	errReplaced    = errors.New("kurrent: the connection is being replaced")
)

// acquire returns a client that is connected, and counts a call in it, which release ends.
// It waits for the connection as long as ctx lasts. The error says why there is none;
// nothing was sent then.
func (s *supervisor) acquire(ctx context.Context) (*client, error) {
	for {
		c, err := s.pick()
		if err != nil {
			return nil, err
		}
		if err := s.await(ctx, c); err != nil {
			return nil, err
		}
		if c.err != nil {
			return nil, c.err
		}
		if s.enter(c) {
			return c, nil
		}
	}
}

// await waits until a client is connected, or has failed to connect.
func (s *supervisor) await(ctx context.Context, c *client) error {
	select {
	case <-c.connected:
		return nil
	default:
	}
	select {
	case <-c.connected:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closing.Done():
		return eventlog.ErrClosed
	}
}

// pick returns the current client, or a new one that is being connected.
func (s *supervisor) pick() (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, eventlog.ErrClosed
	case s.hung >= maxHung:
		return nil, errTooManyHung
	case s.current != nil:
		return s.current, nil
	}
	c := &client{connected: make(chan struct{}), door: make(chan struct{}, 1), calls: 1}
	c.given, c.giveUp = context.WithCancelCause(context.Background())
	var err error
	if c.Client, err = s.dial(s.hear(c)); err != nil {
		return nil, fmt.Errorf("kurrent: no client: %w", err)
	}
	s.current = c
	go s.connect(c)
	return c, nil
}

// connect lets a client find its node. It is the one call in it that may take long.
func (s *supervisor) connect(c *client) {
	defer s.release(c)
	version, err := c.GetServerVersion()
	if err != nil {
		c.err = &unreachable{err}
		s.retire(c, err)
	} else {
		s.logger.Info("connected to the event log", "server", fmt.Sprintf("%d.%d.%d", version.Major, version.Minor, version.Patch))
	}
	close(c.connected)
}

// unreachable is the error of a client that has found no node.
type unreachable struct{ cause error }

func (u *unreachable) Error() string { return "kurrent: no node could be reached: " + u.cause.Error() }

func (u *unreachable) Unwrap() error { return u.cause }

// lastWords is what the client says of an error right before it tells itself to look for
// another node, in the goroutine of the call that met the error.
const lastWords = "unexpected exception: %v"

// hear returns what a client is to tell its words to. When they are its last words, the
// client is spent before it acts on them: the call that speaks waits until whoever asks
// for the connection at this moment has got it, and nobody asks after that.
func (s *supervisor) hear(c *client) esdb.LoggingFunc {
	return func(level esdb.LogLevel, format string, args ...any) {
		if len(args) == 1 { // it hands its arguments on in two ways
			if list, ok := args[0].([]any); ok {
				args = list
			}
		}
		s.logger.Debug("the client says", "level", level, "message", fmt.Sprintf(format, args...))
		if format != lastWords || len(args) != 1 {
			return
		}
		if err, ok := args[0].(error); ok && spent(err) {
			s.retire(c, err)
			c.door <- struct{}{}
			<-c.door
		}
	}
}

// ask begins the part of a call in which the client is asked for its connection, and
// returns the call's context; that part ends when the client first looks at the context,
// which it does with the connection in hand, or with done. Only one call is in that part
// at a time, and none in a client that is spent: false.
func (s *supervisor) ask(ctx context.Context, c *client) (asking context.Context, done func(), ok bool) {
	select {
	case c.door <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, false
	case <-c.given.Done():
		return nil, nil, false
	}
	done = sync.OnceFunc(func() { <-c.door })
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.spent {
		done()
		return nil, nil, false
	}
	return &askingContext{Context: ctx, answered: done}, done, true
}

// askingContext tells when it is first asked for its deadline.
type askingContext struct {
	context.Context
	answered func()
}

func (a *askingContext) Deadline() (time.Time, bool) {
	a.answered()
	return a.Context.Deadline()
}

// enter counts another call in a client. It reports false for one that is spent.
func (s *supervisor) enter(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.spent {
		return false
	}
	c.calls++
	return true
}

// reenter counts another call in a client, by somebody who has one in it already.
func (s *supervisor) reenter(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.calls++
}

// release ends a call in a client, and closes it if it was the last in one that is spent.
func (s *supervisor) release(c *client) {
	s.mu.Lock()
	c.calls--
	last := c.spent && c.calls == 0
	s.mu.Unlock()
	if last {
		_ = c.Close() // it always returns nil
	}
}

// retire takes a client out of use. The next call gets a new one.
func (s *supervisor) retire(c *client, why error) {
	s.mu.Lock()
	if c.spent {
		s.mu.Unlock()
		return
	}
	c.spent = true
	if s.current == c {
		s.current = nil
	}
	idle := c.calls == 0
	s.mu.Unlock()
	c.giveUp(errReplaced)
	if idle {
		_ = c.Close()
	}
	s.logger.Info("the connection to the event log is given up", "reason", why)
}

// abandon counts a call that does not come back; the returned function ends that.
func (s *supervisor) abandon() (returned func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hung--
	}
}

// close takes the current client out of use, and lets no other follow it.
func (s *supervisor) close() {
	s.mu.Lock()
	s.closed = true
	c := s.current
	s.mu.Unlock()
	if c != nil {
		s.retire(c, eventlog.ErrClosed)
	}
}
