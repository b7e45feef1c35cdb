package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/submissions"
)

// restartedUnderLoad restarts the server while claimants are at it. Afterwards every
// withdrawal is held by the one that was told so, and the money left once.
func restartedUnderLoad(t *testing.T, s *server) {
	if s.restart == nil {
		t.Skip(s.why)
	}
	const claimants, withdrawals = 8, 40
	prefix, till := prefix(), newTill()
	var ledgers []*submissions.Ledger
	for range 2 {
		ledgers = append(ledgers, ledger(t, s.log(t, prefix, patient())))
	}
	var ids [withdrawals]events.WithdrawalID
	for i := range ids {
		ids[i] = requested(t, ledgers[0], fmt.Sprint("order-", i))
	}
	var claims [withdrawals][]claim
	for i := range claims {
		claims[i] = make([]claim, claimants)
	}
	answered := make(chan struct{}, claimants*withdrawals)
	var claiming sync.WaitGroup
	for c := range claimants {
		claiming.Go(func() {
			for n := range ids {
				i := (n + c*withdrawals/claimants/2) % withdrawals // so that each wins some
				key := events.RequestKey(fmt.Sprintf("req-%d-%d", c, i))
				claims[i][c] = submitted(t.Context(), ledgers[c%len(ledgers)], key, ids[i], till.send)
				answered <- struct{}{}
			}
		})
	}
	for range s.restarts {
		for range claimants * withdrawals / (s.restarts + 1) {
			<-answered
		}
		s.restart(t)
	}
	claiming.Wait()

	log := s.log(t, prefix, nil)
	l := ledger(t, log)
	for i, id := range ids {
		winner := oneWinner(t, id, claims[i], till.times(id))
		status, err := l.ClaimedBy(t.Context(), id)
		if err != nil || status.Claim == nil || status.Claim.Key != winner || status.Outcome == nil || status.Outcome.Result != events.ResultSent {
			t.Errorf("withdrawal %s, which %s was told that it has paid: %+v, %v", id, winner, status, err)
		}
	}
	if report, err := audit.Verify(t.Context(), log, nil); err != nil || !report.Clean() {
		t.Errorf("the log: %+v, %v", report, err)
	}
}

// followedAcrossARestart restarts the server under a follower, which misses nothing and
// sees nothing twice.
func followedAcrossARestart(t *testing.T, s *server) {
	if s.restart == nil {
		t.Skip(s.why)
	}
	const before, after = 20, 20
	prefix := prefix()
	log, other := s.log(t, prefix, patient()), s.log(t, prefix, patient())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	half, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		next := uint64(0)
		for r, err := range other.Follow(ctx, eventlog.Start) {
			if err == nil && (r.Stream != "s" || r.Revision != next) {
				err = fmt.Errorf("revision %d of %s comes where %d of s should be", r.Revision, r.Stream, next)
			}
			if err != nil {
				ended <- err
				return
			}
			switch next++; next {
			case before:
				close(half)
			case before + after:
				ended <- nil
				return
			}
		}
	}()
	for at := range uint64(before) {
		appended(t, log, to("s", at, 1))
	}
	select {
	case <-half:
	case err := <-ended:
		t.Fatalf("Follow: %v", err)
	}
	s.restart(t)
	for at := range uint64(after) {
		appended(t, log, to("s", before+at, 1))
	}
	if err := <-ended; err != nil {
		t.Errorf("Follow: %v", err)
	}
}
