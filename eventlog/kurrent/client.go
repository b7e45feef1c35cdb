package kurrent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

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

	// calls is how many goroutines are inside the client, and spent that it takes no
	// more of them; both are the supervisor's.
	calls int
	spent bool
}

// supervisor hands out a client that works, and replaces one that does not.
//
// A client is closed only when no call is in it, because closing it under a call panics.
// Its discovery is started by the supervisor, and by nobody else: while it lasts the
// client is deaf to every context, and when it fails, whoever else waits inside the
// client waits for ever. So callers wait here for it, where their contexts are heard.
type supervisor struct {
	dial   func() (*esdb.Client, error)
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
		s.mu.Lock()
		if !c.spent {
			c.calls++
			s.mu.Unlock()
			return c, nil
		}
		s.mu.Unlock()
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
	inner, err := s.dial()
	if err != nil {
		return nil, fmt.Errorf("kurrent: no client: %w", err)
	}
	c := &client{Client: inner, connected: make(chan struct{}), calls: 1}
	c.given, c.giveUp = context.WithCancelCause(context.Background())
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

// enter counts another call in a client, by somebody who has one in it already.
func (s *supervisor) enter(c *client) {
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
