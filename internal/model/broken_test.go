package model_test

import (
	"context"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"holdfast/aggregate"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// TestBrokenLedgersAreRejected shows that the checker can say no: each of these ledgers
// is wrong in one way, and is found out.
func TestBrokenLedgersAreRejected(t *testing.T) {
	for name, wrap := range map[string]func(*submissions.Ledger) ledger{
		"lets a second key through": func(l *submissions.Ledger) ledger { return secondKey{l} },
		"tells a stale status": func(l *submissions.Ledger) ledger {
			return &stale{Ledger: l, seen: map[events.WithdrawalID]submissions.Status{}}
		},
		"replays other bytes":        func(l *submissions.Ledger) ledger { return otherBytes{l} },
		"takes unknown for refused":  func(l *submissions.Ledger) ledger { return optimist{l} },
		"says released and does not": func(l *submissions.Ledger) ledger { return idle{l} },
	} {
		t.Run(name, func(t *testing.T) {
			const most = 50
			for seed := range uint64(most) {
				k := kinds()[0]
				verdict, _ := check(k, concurrent(t, k, seed, wrap))
				switch verdict {
				case porcupine.Illegal:
					t.Logf("rejected at seed %d", seed)
					return
				case porcupine.Unknown:
					t.Fatalf("seed %d: not decided in time", seed)
				}
			}
			t.Errorf("survived %d histories", most)
		})
	}
}

// secondKey pays what another key holds.
type secondKey struct{ *submissions.Ledger }

func (b secondKey) Submit(ctx context.Context, key events.RequestKey, id events.WithdrawalID, send rail.Sender, o *submissions.SubmitOptions) (submissions.Outcome, error) {
	outcome, err := b.Ledger.Submit(ctx, key, id, send, o)
	if code, _ := submissions.CodeOf(err); code == aggregate.CodeWithdrawalClaimed {
		defer func() { _ = recover() }() // the rail may panic
		_, err = send(ctx, rail.Payment{Withdrawal: id, Attempt: 1, Token: string(id)})
	}
	return outcome, err
}

// stale tells of each withdrawal for ever what it saw first.
type stale struct {
	*submissions.Ledger
	mu   sync.Mutex
	seen map[events.WithdrawalID]submissions.Status
}

func (b *stale) ClaimedBy(ctx context.Context, id events.WithdrawalID) (submissions.Status, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.seen[id]; ok {
		return s, nil
	}
	s, err := b.Ledger.ClaimedBy(ctx, id)
	b.seen[id] = s
	return s, err
}

// otherBytes replays an outcome with a byte more.
type otherBytes struct{ *submissions.Ledger }

func (b otherBytes) Submit(ctx context.Context, key events.RequestKey, id events.WithdrawalID, send rail.Sender, o *submissions.SubmitOptions) (submissions.Outcome, error) {
	outcome, err := b.Ledger.Submit(ctx, key, id, send, o)
	if outcome.Replayed {
		outcome.Response.Body = append(outcome.Response.Body[:len(outcome.Response.Body):len(outcome.Response.Body)], '\n')
	}
	return outcome, err
}

// optimist takes any error of a rail for a clean refusal.
type optimist struct{ *submissions.Ledger }

func (b optimist) Submit(ctx context.Context, key events.RequestKey, id events.WithdrawalID, send rail.Sender, o *submissions.SubmitOptions) (submissions.Outcome, error) {
	return b.Ledger.Submit(ctx, key, id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		receipt, err := send(ctx, p)
		if err != nil {
			err = &rail.Refusal{Reason: err.Error()}
		}
		return receipt, err
	}, o)
}

// idle says that it has released a key, and has only looked it up.
type idle struct{ *submissions.Ledger }

func (b idle) Release(ctx context.Context, key events.RequestKey, _ submissions.Release) (submissions.Status, error) {
	return b.Outcome(ctx, key)
}
