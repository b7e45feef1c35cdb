package transfer

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/submissions"
)

// asking is how many questions are asked at the same time.
const asking = 16

// answers asks the ledgers on both logs about every withdrawal and every key of the source.
type answers struct {
	source, target *submissions.Ledger
	codec          *events.Codec

	mu                sync.Mutex // guards what follows
	withdrawals, keys uint64
	sending           *submissions.Status
}

func newAnswers(source, target eventlog.Log, now time.Time) (*answers, error) {
	o := &submissions.Options{Clock: func() time.Time { return now }} // or answers would differ by when they were given
	a := &answers{codec: events.NewCodec()}
	var err error
	if a.source, err = submissions.New(source, o); err != nil {
		return nil, err
	}
	a.target, err = submissions.New(target, o)
	return a, err
}

// compare asks about everything in a log. It returns [*Differs] for the first answer that
// is not the same.
func (a *answers) compare(ctx context.Context, log eventlog.Log, progress func(events uint64)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	firsts := make(chan eventlog.Recorded)
	var working sync.WaitGroup
	for range asking {
		working.Go(func() {
			for r := range firsts {
				if err := a.ask(ctx, r); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	err := hand(ctx, log, firsts, progress)
	close(firsts)
	working.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// hand hands on the first event of every stream.
func hand(ctx context.Context, log eventlog.Log, firsts chan<- eventlog.Recorded, progress func(events uint64)) error {
	n := uint64(0)
	for r, err := range log.ReadAll(ctx, eventlog.Start) {
		if err != nil {
			return fmt.Errorf("the source cannot be read: %w", err)
		}
		n++
		progress(n)
		if r.Revision > 0 {
			continue
		}
		select {
		case firsts <- r:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// ask asks both ledgers about the withdrawal or the key that a stream is about.
func (a *answers) ask(ctx context.Context, r eventlog.Recorded) error {
	chain := a.codec.Chain(r.Stream)
	first, err := chain.Read(events.Stored{Stream: r.Stream, ID: r.ID, Type: r.Type, Data: r.Data, Metadata: r.Metadata})
	if err != nil {
		return err
	}
	var question func(*submissions.Ledger) (submissions.Status, error)
	switch e := first.Event.(type) {
	case events.WithdrawalRequested:
		question = func(l *submissions.Ledger) (submissions.Status, error) {
			return l.For(e.Tenant).ClaimedBy(ctx, e.Withdrawal)
		}
	case events.KeyReserved:
		question = func(l *submissions.Ledger) (submissions.Status, error) { return l.For(e.Tenant).Outcome(ctx, e.Key) }
	default:
		return &Differs{Stream: r.Stream, Reason: fmt.Sprintf("nobody can be asked about a stream that begins with %s", r.Type)}
	}
	was, err1 := question(a.source)
	is, err2 := question(a.target)
	for _, err := range []error{err1, err2} {
		if code, _ := submissions.CodeOf(err); err != nil && code != submissions.CodeNotFound { // which is an answer
			return err
		}
	}
	if !reflect.DeepEqual(was, is) || !reflect.DeepEqual(err1, err2) {
		return &Differs{Stream: r.Stream, Reason: fmt.Sprintf("the ledger on the target answers otherwise than the one on the source: %+v (%v), and not %+v (%v)", is, err2, was, err1)}
	}
	a.note(first.Event, was)
	return nil
}

func (a *answers) note(about events.Event, s submissions.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := about.(events.KeyReserved); ok {
		a.keys++
		return
	}
	a.withdrawals++
	if s.State == aggregate.StateSending && (a.sending == nil || s.Claim.Attempt.Deadline.After(a.sending.Claim.Attempt.Deadline)) {
		a.sending = &s
	}
}
