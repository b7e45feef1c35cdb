package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/eventlog"
)

const (
	// together is how many lanes are appended at the same time. An embedded engine puts
	// what comes together into one commit; a cluster answers one request per append.
	together = 64
	// patience is how long an append whose result is not known is tried again.
	patience = time.Minute
	maxPause = time.Second
)

// target is the log that is copied into.
type target struct {
	log   eventlog.Log
	pause func(ctx context.Context, d time.Duration) error
}

// put appends a window. What is there already is not written again.
func (t *target) put(ctx context.Context, w *window) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	lanes := make(chan []eventlog.Recorded)
	var working sync.WaitGroup
	for range together {
		working.Go(func() {
			for lane := range lanes {
				if err := t.putLane(ctx, lane); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	for _, lane := range w.lanes() {
		select {
		case lanes <- lane:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(lanes)
	working.Wait()
	return context.Cause(ctx)
}

func (t *target) putLane(ctx context.Context, lane []eventlog.Recorded) error {
	for _, call := range calls(lane) {
		err := t.append(ctx, call...)
		var conflict *eventlog.Conflict
		if errors.As(err, &conflict) {
			for i := range call {
				if err = t.putRest(ctx, call[i]); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putRest appends what the target does not have yet of an append, after a conflict. The
// target may have a part of it, where an earlier run was cut off in another place.
func (t *target) putRest(ctx context.Context, a eventlog.StreamAppend) error {
	for {
		had := 0
		for r, err := range t.log.ReadStream(ctx, a.Stream, a.At) {
			if err != nil {
				return fmt.Errorf("the target cannot be read: %w", err)
			}
			if had == len(a.Events) {
				break
			}
			if !sameEvent(&r.Event, &a.Events[had]) {
				return &Differs{Stream: a.Stream, Revision: r.Revision, Reason: "the target has another event there than the source"}
			}
			had++
		}
		if had == len(a.Events) {
			return nil
		}
		rest := eventlog.StreamAppend{Stream: a.Stream, At: a.At + uint64(had), Events: a.Events[had:]}
		err := t.append(ctx, rest)
		var conflict *eventlog.Conflict
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &conflict):
			return err
		case conflict.Actual != nil && *conflict.Actual < rest.At:
			return &Differs{Stream: a.Stream, Revision: *conflict.Actual, Reason: "the target does not have the event, and has to have it before the next one"}
		}
		if err := t.pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// append appends, and tries the very same bytes again where it is not known whether they
// are in the target.
func (t *target) append(ctx context.Context, appends ...eventlog.StreamAppend) error {
	var waited time.Duration
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, maxPause) {
		_, err := t.log.Append(ctx, appends...)
		if err == nil || waited >= patience || !errors.Is(err, eventlog.ErrUnknownResult) && !errors.Is(err, eventlog.ErrNotExecuted) {
			return err
		}
		if pausing := t.pause(ctx, pause); pausing != nil {
			return errors.Join(err, pausing)
		}
		waited += pause
	}
}
