package kurrent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

// Follow implements [eventlog.Log]. It is woken by the server. When the subscription
// drops, for whatever reason, it goes on from where it was; it ends with
// [eventlog.ErrUnavailable] when that has failed for six times the log's patience. It
// needs the right to read "$all".
func (l *Log) Follow(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		f := &follower{Log: l, at: after, yield: yield, seals: newSealer()}
		for !f.stopped {
			err := f.subscribe(ctx)
			if f.stopped {
				return
			}
			if err = f.goesOn(ctx, err); err != nil {
				yield(eventlog.Recorded{}, err)
				return
			}
		}
	}
}

// follower is one Follow under way.
type follower struct {
	*Log
	// at is the place up to which everything has been delivered.
	at      eventlog.Position
	yield   func(eventlog.Recorded, error) bool
	stopped bool
	seals   *sealer
	// failing is since when nothing has come, and next the pause before the next try.
	failing time.Time
	next    retry
}

// errDropped wraps what ended a subscription.
var errDropped = errors.New("kurrent: the subscription was dropped")

// goesOn decides what follows on the end of a subscription: nil after a pause, or the
// error that ends the following.
func (f *follower) goesOn(ctx context.Context, err error) error {
	if ended := f.ended(ctx); ended != nil {
		return ended
	}
	if classOf(err) == refused {
		return refusal(`following "$all"`, err)
	}
	if f.failing.IsZero() {
		f.failing, f.next = f.Clock(), retry{pause: 5 * time.Millisecond, most: time.Second}
	}
	if f.Clock().Sub(f.failing) >= followPatience*f.Patience {
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
	}
	if !f.next.wait(ctx, f.Log) {
		return f.ended(ctx)
	}
	return nil
}

// subscribe delivers what one subscription brings, until it is dropped.
func (f *follower) subscribe(ctx context.Context) error {
	if err := f.ended(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(leader(ctx))
	defer cancel(nil)
	defer context.AfterFunc(f.closing, func() { cancel(eventlog.ErrClosed) })()
	if f.at >= math.MaxInt64 {
		<-ctx.Done() // nothing will ever be beyond that
		return context.Cause(ctx)
	}
	c, err := f.clients.acquire(ctx)
	if err != nil {
		return err
	}
	defer f.clients.release(c)
	defer context.AfterFunc(c.given, func() { cancel(errReplaced) })()

	subscription, err := f.confirmed(ctx, c, cancel)
	if err != nil {
		return err
	}
	defer subscription.Close()
	for {
		event := subscription.Recv()
		switch {
		case event.SubscriptionDropped != nil:
			return fmt.Errorf("%w: %w", errDropped, event.SubscriptionDropped.Error)
		case event.EventAppeared != nil:
			if !f.deliver(event.EventAppeared.OriginalEvent()) {
				return nil
			}
		case event.CheckPointReached != nil:
			f.failing = time.Time{} // a sign of life, and no event: the place stays
		}
	}
}

// confirmed subscribes, and waits for the server's word that it has. The same context
// governs that wait and the life of the subscription, so the wait has a timer of its own.
func (f *follower) confirmed(ctx context.Context, c *client, cancel context.CancelCauseFunc) (*esdb.Subscription, error) {
	filter := &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: `^[^$]`}
	if f.prefix != "" {
		filter = &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{f.prefix}}
	}
	timer := time.AfterFunc(f.CallTimeout, func() { cancel(errTimeout) })
	defer timer.Stop()
	return apart(ctx, f.Log, c, func(ctx context.Context) (*esdb.Subscription, error) {
		return c.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{
			From: start(f.at), Filter: filter, MaxSearchWindow: 512, CheckpointInterval: 1, RequiresLeader: true,
		})
	}, func(s *esdb.Subscription) { _ = s.Close() })
}

// deliver hands on an event of this log that was not handed on before. It reports false
// when the consumer stops.
func (f *follower) deliver(e *esdb.RecordedEvent) bool {
	f.failing = time.Time{}
	position := eventlog.Position(e.Position.Commit)
	if position <= f.at {
		return true
	}
	f.at = position
	if _, ours := f.streamOf(e); ours && !f.yield(f.recorded(f.seals, e), nil) {
		f.stopped = true
	}
	return !f.stopped
}
