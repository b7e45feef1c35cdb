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

// compare asks about everything in a log that has events after a position. It returns
// [*Differs] for the first answer that is not the same.
func (a *answers) compare(ctx context.Context, log eventlog.Log, after eventlog.Position, progress func(events uint64)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	firsts := make(chan eventlog.Recorded)
	var working sync.WaitGroup
	for range asking {
		working.Go(func() {
			for r := range firsts {
				if err := a.ask(ctx, r, r.Position > after); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	err := hand(ctx, log, after, firsts, progress)
	close(firsts)
	working.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// hand hands on the first event of every stream that has events after a position.
func hand(ctx context.Context, log eventlog.Log, after eventlog.Position, firsts chan<- eventlog.Recorded, progress func(events uint64)) error {
	n, seen := uint64(0), map[string]bool{} // streams that began before, which are few
	for r, err := range log.ReadAll(ctx, after) {
		n++
		progress(n)
		if err == nil && r.Revision > 0 {
			if after == eventlog.Start || seen[r.Stream] {
				continue
			}
			seen[r.Stream] = true
			r, err = begins(ctx, log, r.Stream)
			if r.Position > after {
				continue // it was handed on when it began
			}
		}
		if err != nil {
			return fmt.Errorf("the source cannot be read: %w", err)
		}
		select {
		case firsts <- r:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// begins returns the first event of a stream.
func begins(ctx context.Context, log eventlog.Log, stream string) (eventlog.Recorded, error) {
	for r, err := range log.ReadStream(ctx, stream, 0) {
		return r, err
	}
	return eventlog.Recorded{}, eventlog.Missing(stream, 0)
}

// ask asks both ledgers about the withdrawal or the key that a stream is about, and about
// the keys that claimed the withdrawal, whose streams may have nothing new.
func (a *answers) ask(ctx context.Context, r eventlog.Recorded, fresh bool) error {
	chain := a.codec.Chain(r.Stream)
	first, err := chain.Read(events.Stored{Stream: r.Stream, ID: r.ID, Type: r.Type, Data: r.Data, Metadata: r.Metadata})
	if err != nil {
		return err
	}
	switch e := first.Event.(type) {
	case events.WithdrawalRequested:
		s, err := a.same(r.Stream, func(l *submissions.Ledger) (submissions.Status, error) {
			return l.For(e.Tenant).ClaimedBy(ctx, e.Withdrawal)
		})
		if a.note(s, fresh); err != nil || fresh {
			return err
		}
		keys := []events.RequestKey{}
		for _, past := range s.PastClaims {
			keys = append(keys, past.Key)
		}
		if s.Claim != nil {
			keys = append(keys, s.Claim.Key)
		}
		for _, key := range keys {
			if err := a.about(ctx, e.Tenant, key); err != nil {
				return err
			}
		}
		return nil
	case events.KeyReserved:
		if fresh {
			a.mu.Lock()
			a.keys++
			a.mu.Unlock()
		}
		return a.about(ctx, e.Tenant, e.Key)
	}
	return &Differs{Stream: r.Stream, Reason: fmt.Sprintf("nobody can be asked about a stream that begins with %s", r.Type)}
}

// about asks about a key.
func (a *answers) about(ctx context.Context, tenant events.Tenant, key events.RequestKey) error {
	_, err := a.same(key.Stream(tenant), func(l *submissions.Ledger) (submissions.Status, error) {
		return l.For(tenant).Outcome(ctx, key)
	})
	return err
}

// same asks both ledgers the same, and returns the answer.
func (a *answers) same(stream string, question func(*submissions.Ledger) (submissions.Status, error)) (submissions.Status, error) {
	was, err1 := question(a.source)
	is, err2 := question(a.target)
	for _, err := range []error{err1, err2} {
		if code, _ := submissions.CodeOf(err); err != nil && code != submissions.CodeNotFound { // which is an answer
			return was, err
		}
	}
	if !reflect.DeepEqual(was, is) || !reflect.DeepEqual(err1, err2) {
		return was, &Differs{Stream: stream, Reason: fmt.Sprintf("the ledger on the target answers otherwise than the one on the source: %+v (%v), and not %+v (%v)", is, err2, was, err1)}
	}
	return was, nil
}

// note takes note of a withdrawal, which is counted if it is fresh.
func (a *answers) note(s submissions.Status, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fresh {
		a.withdrawals++
	}
	if s.State == aggregate.StateSending && (a.sending == nil || s.Claim.Attempt.Deadline.After(a.sending.Claim.Attempt.Deadline)) {
		a.sending = &s
	}
}
