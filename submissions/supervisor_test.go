package submissions_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"testing"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/rail/simulated"
	"holdfast/submissions"
)

var supervise = flag.Duration("supervise", 15*time.Second, "how long processes are killed and restarted")

// workers is how many processes work at the same time. What they submit are the orders of
// a window that moves on, so that they always meet at some and there are always new ones.
const (
	workers         = 4
	ordersPerSecond = 100
	ordersWindow    = 40
)

// work requests and submits at random, under keys of its own and under shared ones, with
// a rail that fails at random, until the process is killed.
func (c child) work(ctx context.Context, log eventlog.Log) error {
	random := rand.New(rand.NewPCG(c.Seed, 1))
	var mu sync.Mutex
	faults := []simulated.Fault{simulated.FaultErrorBefore, simulated.FaultErrorAfter, simulated.FaultRefuse, simulated.FaultNoReference}
	bank, err := simulated.Open(c.Book, &simulated.Options{Latency: time.Millisecond, Fault: func(rail.Payment) simulated.Fault {
		mu.Lock()
		defer mu.Unlock()
		if n := random.IntN(20); n < len(faults) {
			return faults[n]
		}
		return simulated.FaultNone
	}})
	if err != nil {
		return err
	}
	ledger, err := submissions.New(log, nil)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		mu.Lock()
		order := int(time.Since(c.Since).Seconds()*ordersPerSecond) + random.IntN(ordersWindow)
		own := random.IntN(2) == 0
		mu.Unlock()
		w, err := ledger.Request(ctx, benchOrder(order))
		if err != nil {
			return err
		}
		key := benchKey(order)
		if own {
			key = events.RequestKey(fmt.Sprintf("%s-%d", c.Name, i))
		}
		_, err = ledger.Submit(ctx, key, w.ID, bank.Send, nil)
		if code, refused := submissions.CodeOf(err); err != nil && (!refused || code == aggregate.CodeDamaged) {
			return err
		}
	}
}

// Several processes work on one file and are killed every few hundred milliseconds, each
// time at whatever point they are at, and started again. At the end a person goes through
// what is in flight. Nothing left twice, the rail's book and the log agree, and the log is
// clean.
func TestSupervisedKills(t *testing.T) {
	p := newPlace(t, onSQLite, nil)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), *supervise)
	defer cancel()
	var group sync.WaitGroup
	var mu sync.Mutex
	killed := 0
	for i := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for round := 0; ctx.Err() == nil; round++ {
				worker := child{Log: p.path, Book: p.book, Name: fmt.Sprintf("w%d-%d", i, round), Seed: random.Uint64() | 1, Since: began}
				if err := runFor(ctx, worker.command(t), time.Duration(50+random.IntN(350))*time.Millisecond); err != nil {
					t.Errorf("worker %d: %v", i, err)
					return
				}
				mu.Lock()
				killed++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	inFlight := p.closeEverything(t)
	counts, err := simulated.Count(p.book)
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for id := range p.withdrawals(t) {
		s, err := p.ClaimedBy(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case s.Outcome == nil && (s.State != aggregate.StateRequested || counts[id] != 0):
			t.Errorf("withdrawal %s is %s and left %d times", id, s.State, counts[id])
		case s.Outcome != nil && counts[id] != 1:
			t.Errorf("withdrawal %s is %s and left %d times", id, s.State, counts[id])
		case s.Outcome != nil:
			sent++
		}
	}
	p.verify(t)
	if killed < workers || sent == 0 {
		t.Errorf("%d kills, %d withdrawals sent: that proves nothing", killed, sent)
	}
	t.Logf("%d kills in %s; %d withdrawals sent, each once; %d were in flight at the end", killed, *supervise, sent, inFlight)
}

// runFor starts a process and kills it when its time is up, or the context ends. It
// returns an error when the process ended by itself.
func runFor(ctx context.Context, cmd *exec.Cmd, d time.Duration) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-ended:
		return fmt.Errorf("it ended by itself: %w\n%s", err, cmd.Stderr)
	case <-timer.C:
	case <-ctx.Done():
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	if err := <-ended; !isKill(err) {
		return fmt.Errorf("it was to be killed: %w\n%s", err, cmd.Stderr)
	}
	return nil
}

// closeEverything is the person who comes later and goes through the list: what left is
// resolved as sent, what did not is released and sent again. It returns how much there
// was.
func (p *place) closeEverything(t *testing.T) int {
	t.Helper()
	ctx := t.Context()
	later := newLedger(t, p.log, &submissions.Options{Clock: func() time.Time { return time.Now().Add(24 * time.Hour) }})
	list, err := later.InFlight(ctx)
	if err != nil {
		t.Fatal(err)
	}
	book := map[events.WithdrawalID]string{}
	for entry, err := range simulated.Payments(p.book) {
		if err != nil {
			t.Fatal(err)
		}
		book[entry.Withdrawal] = entry.Reference
	}
	for _, s := range list {
		if reference, left := book[s.ID]; left {
			with := wasSent
			with.Reference, with.Seen = reference, s.Events
			taken(t)(later.Resolve(ctx, s.Holder(), with))
			continue
		}
		if _, err := release(ctx, later, s.Holder()); err != nil {
			t.Fatal(err)
		}
		taken(t)(later.Submit(ctx, "again-"+s.Holder(), s.ID, p.rail.Send, nil))
	}
	if list, err := later.InFlight(ctx); err != nil || len(list) != 0 {
		t.Errorf("still in flight: %+v, %v", list, err)
	}
	return len(list)
}

// withdrawals are the ids of all withdrawals in the log.
func (p *place) withdrawals(t *testing.T) map[events.WithdrawalID]bool {
	t.Helper()
	ids := map[events.WithdrawalID]bool{}
	for r, err := range p.log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := events.WithdrawalOfStream(r.Stream); ok {
			ids[id] = true
		}
	}
	return ids
}
