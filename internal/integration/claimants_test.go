package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// till counts what leaves, by withdrawal.
type till struct {
	mu   sync.Mutex
	left map[events.WithdrawalID]int
}

func newTill() *till { return &till{left: map[events.WithdrawalID]int{}} }

func (r *till) send(_ context.Context, p rail.Payment) (rail.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[p.Withdrawal]++
	return rail.Receipt{Reference: fmt.Sprint("till-", p.Withdrawal)}, nil
}

func (r *till) times(id events.WithdrawalID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left[id]
}

// ledger returns a ledger on a log.
func ledger(t *testing.T, log eventlog.Log) *submissions.Ledger {
	t.Helper()
	l, err := submissions.New(log, &submissions.Options{Patience: 3 * time.Minute, SendTimeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// requested requests a withdrawal.
func requested(t *testing.T, l *submissions.Ledger, reference string) events.WithdrawalID {
	t.Helper()
	w, err := l.Request(t.Context(), submissions.Request{
		By: submissions.By{Actor: "tester"}, Account: "alice", Reference: reference, Amount: "10.25", Currency: "EUR", Destination: "DE89",
	})
	if err != nil {
		t.Fatal(err)
	}
	return w.ID
}

// claim is what became of one claimant's submit.
type claim struct {
	key    events.RequestKey
	holder events.RequestKey // "" for the winner
	err    error             // beside that the withdrawal is claimed
}

// submitted submits under a key, and again as long as the log says that this is safe.
func submitted(ctx context.Context, l *submissions.Ledger, key events.RequestKey, id events.WithdrawalID, send rail.Sender) claim {
	c := claim{key: key}
	for range 100 {
		_, err := l.Submit(ctx, key, id, send, nil)
		var refusal *submissions.Refusal
		switch {
		case err == nil:
			return claim{key: key}
		case errors.As(err, &refusal) && refusal.Code == submissions.CodeWithdrawalClaimed:
			return claim{key: key, holder: refusal.Holder}
		}
		c.err = err
		if refusal == nil || refusal.Code != submissions.CodeUnavailable || ctx.Err() != nil {
			break
		}
	}
	return c
}

// oneWinner fails the test unless one claimant won, all others were told so, and the money
// left once.
func oneWinner(t *testing.T, id events.WithdrawalID, claims []claim, times int) (winner events.RequestKey) {
	t.Helper()
	winners := 0
	for _, c := range claims {
		if c.err == nil && c.holder == "" {
			winner = c.key
			winners++
		}
	}
	if winners != 1 || times != 1 {
		t.Errorf("withdrawal %s: %d claimants won, and the money left %d times", id, winners, times)
	}
	for _, c := range claims {
		if c.err != nil || c.key != winner && c.holder != winner {
			t.Errorf("withdrawal %s: claimant %s was told %q, %v; it is held by %s", id, c.key, c.holder, c.err, winner)
		}
	}
	return winner
}

// A10: of 64 claimants, through three connections, one wins; round after round.
func racingClaimants(t *testing.T, s *server) {
	prefix := prefix()
	var ledgers []*submissions.Ledger
	for range 3 {
		ledgers = append(ledgers, ledger(t, s.log(t, prefix, nil)))
	}
	till := newTill()
	const rounds, claimants = 100, 64
	claims := make([]claim, claimants)
	for round := range rounds {
		id := requested(t, ledgers[0], fmt.Sprint("order-", round))
		var racing sync.WaitGroup
		for i := range claims {
			racing.Go(func() {
				key := events.RequestKey(fmt.Sprintf("req-%d-%d", round, i))
				claims[i] = submitted(t.Context(), ledgers[i%len(ledgers)], key, id, till.send)
			})
		}
		racing.Wait()
		if oneWinner(t, id, claims, till.times(id)); t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}
