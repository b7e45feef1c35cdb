package kurrent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/metadata"

	"holdfast/eventlog"
)

// moment is how long a call whose time is up may take to come back by itself, which it
// nearly always does at once.
const moment = 50 * time.Millisecond

// errTimeout is the cause with which the context of a single request ends.
var errTimeout = errors.New("kurrent: the server did not answer in time")

// errPatience is the cause with which the context of a call ends where its caller set no
// earlier end.
var errPatience = errors.New("kurrent: the log's patience is over")

// leader returns a context whose requests only the leader answers. The client sends
// nothing of the kind, whatever its options say.
func leader(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "requires-leader", "true")
}

// errNotSent wraps the errors of requests for which there was no client.
type errNotSent struct{ cause error }

func (e *errNotSent) Error() string { return e.cause.Error() }

func (e *errNotSent) Unwrap() error { return e.cause }

// request makes one request, within CallTimeout, through a client that is connected.
func request[T any](ctx context.Context, l *Log, do func(ctx context.Context, c *client) (T, error)) (T, error) {
	var zero T
	c, err := l.clients.acquire(ctx)
	if err != nil {
		return zero, &errNotSent{err}
	}
	defer l.clients.release(c)
	ctx, cancel := context.WithTimeoutCause(leader(ctx), l.CallTimeout, errTimeout)
	defer cancel()
	return apart(ctx, l, c, func(ctx context.Context) (T, error) { return do(ctx, c) }, func(T) {})
}

// apart makes a call into a client apart from its caller: the client does not always heed
// a context, so a call that does not come back in time is left to itself, and what it
// brings back later is dropped. A panic of the client's is an error. The caller has
// acquired the client; the context that do gets must go to the client as it is.
func apart[T any](ctx context.Context, l *Log, c *client, do func(context.Context) (T, error), drop func(T)) (T, error) {
	var zero T
	asking, asked, ok := l.clients.ask(ctx, c)
	if !ok {
		return zero, &errNotSent{errReplaced}
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	l.clients.reenter(c)
	l.workers.do(func() {
		defer l.clients.release(c)
		defer asked()
		a := answer{err: errors.New("kurrent: the client ended the goroutine")}
		defer func() {
			if r := recover(); r != nil {
				l.Logger.Error("the client panicked", "panic", fmt.Sprint(r))
				a = answer{err: &panicked{r}}
			}
			answers <- a
		}()
		a.value, a.err = do(asking)
	})
	select {
	case a := <-answers:
		return a.value, settle(ctx, l, c, a.err)
	case <-ctx.Done():
	}
	late := time.NewTimer(moment)
	defer late.Stop()
	select {
	case a := <-answers:
		return a.value, settle(ctx, l, c, a.err)
	case <-late.C:
	}
	returned := l.clients.abandon()
	go func() {
		if a := <-answers; a.err == nil {
			drop(a.value)
		}
		returned()
	}()
	return zero, settle(ctx, l, c, &hung{context.Cause(ctx)})
}

// settle gives up the client where its error calls for that.
// A server that lets a request's time go by may be one that another has taken over from,
// so that is looked into too.
func settle(ctx context.Context, l *Log, c *client, err error) error {
	if err != nil && (spent(err) || isHung(err) || errors.Is(context.Cause(ctx), errTimeout)) {
		l.clients.retire(c, err)
	}
	return err
}

func isHung(err error) bool {
	var h *hung
	var p *panicked
	return errors.As(err, &h) || errors.As(err, &p)
}

// retry is the pause between two tries of one call.
type retry struct{ pause, most time.Duration }

// wait waits for the next try. It reports false when the context, or the log, ends first.
func (r *retry) wait(ctx context.Context, l *Log) bool {
	timer := time.NewTimer(r.pause)
	defer timer.Stop()
	r.pause = min(2*r.pause, r.most)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-l.closing.Done():
		return false
	}
}

// patiently makes a request that changes nothing, again and again until it is answered.
// It returns the context's cause when that ended, [eventlog.ErrUnavailable] when the
// log's patience did, [*Refused], and what classes absent and tombstone stand for.
func patiently[T any](ctx context.Context, l *Log, what string, do func(ctx context.Context, c *client) (T, error)) (T, error) {
	var zero T
	patient, cancel := context.WithTimeoutCause(ctx, l.Patience, errPatience)
	defer cancel()
	next := retry{pause: 5 * time.Millisecond, most: 500 * time.Millisecond}
	for {
		value, err := request(patient, l, do)
		if err == nil {
			return value, nil
		}
		var notSent *errNotSent
		if !errors.As(err, &notSent) {
			switch classOf(err) {
			case refused:
				return zero, refusal(what, err)
			case absent, tombstone:
				return zero, err
			}
		}
		if patient.Err() == nil && next.wait(patient, l) {
			continue
		}
		switch {
		case ctx.Err() != nil:
			return zero, context.Cause(ctx)
		case l.closing.Err() != nil:
			return zero, eventlog.ErrClosed
		}
		return zero, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
	}
}
