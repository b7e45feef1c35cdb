package kurrent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

// maxPrefix is the longest prefix, in bytes. It is beside the port's limits: the server's
// names may be longer than ours.
const maxPrefix = 64

// Log is an event log in a KurrentDB or EventStoreDB. Use Open to make one.
type Log struct {
	Options
	prefix   string
	secure   bool
	clients  *supervisor
	workers  *workers
	whole    *whole
	redacted string

	// closing ends when Close is called.
	closing context.Context
	close   context.CancelFunc

	mu      sync.Mutex // guards that no call starts once the log is closing
	running sync.WaitGroup
}

var (
	_ eventlog.Log    = (*Log)(nil)
	_ eventlog.Headed = (*Log)(nil)
)

// Open opens the log that a URL names: esdb://[USER:PASSWORD@]HOST:PORT,...[?OPTIONS], or
// esdb+discover://NAME for a name that stands for all nodes. It waits until a leader
// answers, for Patience at most. It returns [*eventlog.OpenError] for a URL that it does
// not understand, for a server that cannot be reached (which is then also
// [eventlog.ErrUnavailable]) and for one that does not let the user read.
func Open(ctx context.Context, url string, options *Options) (*Log, error) {
	s, err := parse(url)
	if err != nil {
		return nil, err
	}
	filled, err := options.filled(s)
	if err != nil {
		return nil, err
	}
	l := &Log{Options: filled, prefix: s.prefix, secure: !s.insecure, whole: newWhole(filled.Trust, filled.Clock), redacted: Redacted(url)}
	l.closing, l.close = context.WithCancel(context.Background())
	l.workers = &workers{jobs: make(chan func()), closing: l.closing}
	l.clients = &supervisor{logger: filled.Logger, closing: l.closing, dial: func(hear esdb.LoggingFunc) (*esdb.Client, error) {
		config, err := s.config(hear)
		if err != nil {
			return nil, err
		}
		return esdb.NewClient(config)
	}}
	if err := l.probe(ctx); err != nil {
		_ = l.Close() // it always returns nil
		return nil, l.explain(err)
	}
	return l, nil
}

// probe reads a stream that is not there, from the leader.
func (l *Log) probe(ctx context.Context) error {
	_, err := patiently(ctx, l, "reading", func(ctx context.Context, c *client) (struct{}, error) {
		_, err := readStream(ctx, c, l, probeStream, 0, 1)
		return struct{}{}, err
	})
	if c := classOf(err); err != nil && (c == absent || c == tombstone) {
		return nil
	}
	return err
}

// explain says why a log could not be opened.
func (l *Log) explain(err error) error {
	e := &eventlog.OpenError{Path: l.redacted, Err: err}
	var r *Refused
	switch {
	case errors.As(err, &r):
		e.Reason, e.Try = r.Reason, r.Try
	case errors.Is(err, eventlog.ErrUnavailable):
		e.Reason = fmt.Sprintf("no leader answers (%v)", err)
		e.Try = "check that the servers run, that the URL names all of them, and whether they want TLS"
	default:
		return err // the caller's context
	}
	return e
}

// begin admits a call, and says no once the log is closing.
func (l *Log) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Err() != nil {
		return eventlog.ErrClosed
	}
	l.running.Add(1)
	return nil
}

// Close implements [eventlog.Log]. Calls under way are finished, but not tried again, so
// it takes CallTimeout at most. The connection is closed once the last call has left it.
// It always returns nil.
func (l *Log) Close() error {
	l.mu.Lock()
	l.close()
	l.mu.Unlock()
	l.running.Wait()
	l.clients.close()
	return nil
}
