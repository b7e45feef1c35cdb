package submissions_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/aggregate"
	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/rail/simulated"
	"holdfast/submissions"
)

// TestMain lets the test binary be one of the processes that the tests start.
func TestMain(m *testing.M) {
	if task := os.Getenv("HOLDFAST_TEST_CHILD"); task != "" {
		var c child
		if err := json.Unmarshal([]byte(task), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if err := c.run(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child is what a process started by a test does.
type child struct {
	Log, Book string
	// Submit and DieAt: submit once, and be killed at a labelled point.
	Withdrawal events.WithdrawalID
	Key        events.RequestKey
	DieAt      point
	// Races: submit so many times, for these withdrawals in turn, each time under a key
	// of its own, and say on standard output what came of it.
	Races       int
	Withdrawals []events.WithdrawalID
	Name        string
	// Seed is not zero for a worker: it requests and submits at random until it is killed.
	// Since is when the first worker began.
	Seed  uint64
	Since time.Time
	// Obeys: do what standard input says.
	Obeys bool
}

// point is a labelled point of a submit.
type point string

const (
	afterReservation point = "after the reservation"
	afterClaim       point = "after the claim"
	duringSend       point = "during the send"
	afterMoneyLeft   point = "after the money left"
	beforeOutcome    point = "before the outcome is recorded"
)

func (c child) run(ctx context.Context) error {
	log, err := openAt(ctx, c.Log)
	if err != nil {
		return err
	}
	bank, err := simulated.Open(c.Book, nil)
	if err != nil {
		return err
	}
	switch {
	case c.Seed != 0:
		return c.work(ctx, log)
	case c.Obeys:
		return c.obey(ctx, log)
	}
	if c.Races > 0 {
		return errors.Join(c.race(ctx, log, bank), log.Close())
	}
	dying := &hooked{Log: log}
	ledger, err := submissions.New(dying, nil)
	if err != nil {
		return err
	}
	at := func(p point, eventType string) func([]string) error {
		return func(types []string) error {
			if c.DieAt == p && slices.Contains(types, eventType) {
				die()
			}
			return nil
		}
	}
	switch c.DieAt {
	case afterReservation:
		// On this engine reservation and claim are one commit; on a cluster they are
		// two, and this point is between them.
		dying.apart = true
		dying.after = at(afterReservation, "KeyReserved")
	case afterClaim:
		dying.after = at(afterClaim, "SendAttempted")
	case beforeOutcome:
		dying.before = at(beforeOutcome, "OutcomeResolved")
	}
	_, err = ledger.Submit(ctx, c.Key, c.Withdrawal, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		if c.DieAt == duringSend {
			die()
		}
		receipt, err := bank.Send(ctx, p)
		if c.DieAt == afterMoneyLeft {
			die()
		}
		return receipt, err
	}, nil)
	return fmt.Errorf("it was to die %s, and lived: %w", c.DieAt, err)
}

// die ends this process as a crash does.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// told is what a racer was told about one submit.
type told struct {
	Withdrawal events.WithdrawalID
	Key        events.RequestKey
	Code       submissions.Code
	Holder     events.RequestKey
	Error      string
}

func (c child) race(ctx context.Context, log eventlog.Log, bank *simulated.Rail) error {
	ledger, err := submissions.New(log, nil)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for i := range c.Races {
		said := told{Withdrawal: c.Withdrawals[i%len(c.Withdrawals)], Key: events.RequestKey(fmt.Sprintf("%s-%d", c.Name, i))}
		_, err := ledger.Submit(ctx, said.Key, said.Withdrawal, bank.Send, nil)
		if r := (*submissions.Refusal)(nil); errors.As(err, &r) {
			said.Code, said.Holder, said.Error = r.Code, r.Holder, err.Error()
		}
		if err := out.Encode(said); err != nil {
			return err
		}
	}
	return nil
}

// command returns a process that does what the child says.
func (c child) command(t *testing.T) *exec.Cmd {
	t.Helper()
	task, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "HOLDFAST_TEST_CHILD="+string(task))
	cmd.Stderr = &bytes.Buffer{}
	return cmd
}

// left is how many payments of a withdrawal are in the rail's book.
func (p *place) left(t *testing.T, id events.WithdrawalID) int {
	t.Helper()
	counts, err := simulated.Count(p.book)
	if err != nil {
		t.Fatal(err)
	}
	return counts[id]
}

func (p *place) verify(t *testing.T) {
	t.Helper()
	report, err := audit.Verify(t.Context(), p.log, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Clean() || report.Events == 0 {
		t.Errorf("verify looked at %d events and found %+v", report.Events, report.Findings)
	}
}

// kills is how often a submit is killed at each point.
const kills = 20

// A7: a process that dies at any point of a submit never causes a second send and never
// loses its claim, and what it left is listed in flight with the right sub-state.
func TestA7KilledAtEveryPoint(t *testing.T) {
	for _, e := range []engine{onSQLite, onKurrentDB} {
		t.Run(string(e), func(t *testing.T) { killedAtEveryPoint(t, e) })
	}
}

func killedAtEveryPoint(t *testing.T, e engine) {
	for p, c := range map[point]struct {
		left int // payments in the rail's book when the process is dead
		held bool
	}{
		afterReservation: {left: 0, held: false},
		afterClaim:       {left: 0, held: true},
		duringSend:       {left: 0, held: true},
		afterMoneyLeft:   {left: 1, held: true},
		beforeOutcome:    {left: 1, held: true},
	} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			where := newPlace(t, e, nil)
			// A day later, for the operator's decisions.
			later := newLedger(t, where.log, &submissions.Options{Clock: func() time.Time { return time.Now().Add(24 * time.Hour) }})
			for round := range kills {
				id := where.request(t, fmt.Sprintf("order-%d", round))
				key := events.RequestKey(fmt.Sprintf("req-%d", round))
				cmd := child{Log: where.path, Book: where.book, Withdrawal: id, Key: key, DieAt: p}.command(t)
				if err := cmd.Run(); !isKill(err) {
					t.Fatalf("the process was to be killed: %v\n%s", err, cmd.Stderr)
				}
				if n := where.left(t, id); n != c.left {
					t.Fatalf("%d payments left, want %d", n, c.left)
				}
				if !c.held {
					where.afterReservation(t, later, id, key, round)
					continue
				}
				where.held(t, later, id, key)
			}
			where.verify(t)
		})
	}
}

// afterReservation: nobody holds the withdrawal. The key may go on, and so may another.
func (p *place) afterReservation(t *testing.T, later *submissions.Ledger, id events.WithdrawalID, key events.RequestKey, round int) {
	t.Helper()
	if list, err := later.InFlight(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("in flight: %+v, %v", list, err)
	}
	_, err := p.Outcome(t.Context(), key)
	refused(t, err, aggregate.CodeNotFound)
	if round%2 == 1 {
		key = "another-" + key
	}
	taken(t)(p.Submit(t.Context(), key, id, p.rail.Send, nil))
	if n := p.left(t, id); n != 1 {
		t.Fatalf("%d payments left", n)
	}
}

// held: the claim stands, and only a person's word leads out.
func (p *place) held(t *testing.T, later *submissions.Ledger, id events.WithdrawalID, key events.RequestKey) {
	t.Helper()
	ctx := t.Context()
	for l, state := range map[*submissions.Ledger]aggregate.State{p.Ledger: aggregate.StateSending, later: aggregate.StateUnknown} {
		list, err := l.InFlight(ctx)
		if err != nil || len(list) != 1 || list[0].ID != id || list[0].Holder() != key || list[0].State != state {
			t.Fatalf("in flight: %+v, %v; want %s, %s", list, err, key, state)
		}
	}
	_, err := p.Submit(ctx, key, id, p.rail.Send, nil)
	refused(t, err, aggregate.CodeInFlight)
	_, err = p.Submit(ctx, "another-"+key, id, p.rail.Send, nil)
	if r := refused(t, err, aggregate.CodeWithdrawalClaimed); r.Holder != key {
		t.Errorf("the holder is %q", r.Holder)
	}
	_, err = release(ctx, p.Ledger, key)
	refused(t, err, aggregate.CodeAttemptRunning)

	knowledge, err := p.rail.LookUp(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if knowledge.Verdict == rail.VerdictSent {
		with := wasSent
		with.Reference = knowledge.Reference
		taken(t)(later.Resolve(ctx, key, with))
		taken(t)(p.Submit(ctx, key, id, p.rail.Send, nil))
	} else {
		if _, err := release(ctx, later, key); err != nil {
			t.Fatal(err)
		}
		taken(t)(p.Submit(ctx, "another-"+key, id, p.rail.Send, nil))
	}
	if n := p.left(t, id); n != 1 {
		t.Fatalf("%d payments left", n)
	}
}

func isKill(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// A10 across processes: eight of them submit 200 times each for 50 withdrawals, every
// time under another key, on one log. The rail's book has each withdrawal once, every
// loser was told the holder, and the log is clean.
func TestA10RaceOfEightProcesses(t *testing.T) {
	for _, e := range []engine{onSQLite, onKurrentDB} {
		t.Run(string(e), func(t *testing.T) { raceOfEightProcesses(t, e) })
	}
}

func raceOfEightProcesses(t *testing.T, e engine) {
	const processes, submits, withdrawals = 8, 200, 50
	p := newPlace(t, e, nil)
	var ids []events.WithdrawalID
	for i := range withdrawals {
		ids = append(ids, p.request(t, fmt.Sprintf("order-%d", i)))
	}
	var outputs [processes]bytes.Buffer
	var cmds [processes]*exec.Cmd
	for i := range processes {
		cmds[i] = child{Log: p.path, Book: p.book, Races: submits, Withdrawals: ids, Name: fmt.Sprintf("p%d", i)}.command(t)
		cmds[i].Stdout = &outputs[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, cmd.Stderr)
		}
	}

	holder := map[events.WithdrawalID]events.RequestKey{}
	for _, id := range ids {
		s, err := p.ClaimedBy(t.Context(), id)
		if err != nil || s.State != aggregate.StateSent {
			t.Fatalf("%+v, %v", s, err)
		}
		holder[id] = s.Holder()
	}
	winners, losers := 0, 0
	for i := range outputs {
		lines := bufio.NewScanner(&outputs[i])
		for lines.Scan() {
			var said told
			if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
				t.Fatal(err)
			}
			switch {
			case said.Code == "" && said.Key == holder[said.Withdrawal]:
				winners++
			case said.Code == aggregate.CodeWithdrawalClaimed && said.Holder == holder[said.Withdrawal]:
				losers++
			default:
				t.Errorf("the holder is %q, and %+v", holder[said.Withdrawal], said)
			}
		}
	}
	if winners != withdrawals || losers != processes*submits-withdrawals {
		t.Errorf("%d winners and %d losers who were told the holder", winners, losers)
	}
	lines, err := os.ReadFile(p.book)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(lines), "\n"); n != withdrawals {
		t.Errorf("the rail's book has %d lines, want %d", n, withdrawals)
	}
	for _, id := range ids {
		if n := p.left(t, id); n != 1 {
			t.Errorf("withdrawal %s left %d times", id, n)
		}
	}
	p.verify(t)
	t.Logf("%d processes, %d submits each: %d winners, %d losers told the holder, %d lines in the rail's book", processes, submits, winners, losers, withdrawals)
}
