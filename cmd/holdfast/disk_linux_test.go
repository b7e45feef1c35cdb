package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/audit"
	"holdfast/events"
	"holdfast/rail/simulated"
)

// process runs a command as a process of its own.
func (p *testProgram) process(t *testing.T, args ...string) ran {
	t.Helper()
	return p.processWith(t.Context(), t, args...)
}

// processWith runs a command as a process of its own, which is asked to end with the
// context.
func (p *testProgram) processWith(ctx context.Context, t *testing.T, args ...string) ran {
	t.Helper()
	cmd, err := self(ctx, args...)
	if err != nil {
		t.Error(err)
		return ran{exit: -1}
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "HOLDFAST_LOG="+p.log, "HOLDFAST_RAIL="+p.rail, "HOLDFAST_ACTOR=ann")
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		t.Error(err)
	}
	return ran{exit: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// requests requests withdrawals order-0 to order-(n-1) and returns their ids.
func (p *testProgram) requests(t *testing.T, n int) []string {
	t.Helper()
	var ids []string
	for i := range n {
		r := p.run(t, "request", "--account", "alice", "--reference", fmt.Sprintf("order-%d", i), "--amount", "10.25", "--currency", "EUR", "--destination", "DE89")
		if r.exit != 0 {
			t.Fatal(r)
		}
		ids = append(ids, r.fact("Withdrawal"))
	}
	return ids
}

// submits has several processes at a time submit each withdrawal, number i under the key
// k-i, and returns what came of each. Each has so much time.
func (p *testProgram) submits(t *testing.T, ids []string, patience time.Duration, ended func(n int, r ran)) []ran {
	t.Helper()
	results := make([]ran, len(ids))
	next := make(chan int)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for i := range next {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				results[i] = p.processWith(ctx, t, "submit", "--key", fmt.Sprintf("k-%d", i), "--withdrawal", ids[i])
				cancel()
				ended(i, results[i])
			}
		})
	}
	for i := range ids {
		next <- i
	}
	close(next)
	group.Wait()
	return results
}

// book returns how often each withdrawal left.
func (p *testProgram) book(t *testing.T) map[events.WithdrawalID]int {
	t.Helper()
	counts, err := simulated.Count(strings.TrimPrefix(p.rail, simulatedScheme))
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// state returns who holds a withdrawal and the state that it is in.
func (p *testProgram) state(t *testing.T, id string) (holder, state string) {
	t.Helper()
	r := p.run(t, "claimed-by", "--withdrawal", id, "--json")
	var d struct{ Holder, State string }
	if err := json.Unmarshal([]byte(r.stdout), &d); r.exit != 0 || err != nil {
		t.Fatalf("%s%v", r, err)
	}
	return d.Holder, d.State
}

func (p *testProgram) verified(t *testing.T) {
	t.Helper()
	log, err := openLog(t.Context(), p.log, reads)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	report, err := audit.Verify(t.Context(), log, nil)
	if err != nil || !report.Clean() || report.Events == 0 {
		t.Errorf("verify: %d events, %+v, %v", report.Events, report.Findings, err)
	}
}

// The file system with the log becomes read-only under processes that submit. Each of them
// says so and sends nothing, what is there can be read, and once the file system can be
// written again everything goes on under the same keys.
func TestReadOnlyRemount(t *testing.T) {
	t.Parallel()
	withOwnMounts(t, false, func(t *testing.T) {
		const size = "64m"
		p := newTestProgram(t)
		disk := mounted(t, size)
		p.log = "sqlite:" + filepath.Join(disk, "log.db")
		ids := p.requests(t, 31)
		// What a process that was killed left in the write-ahead log is read too.
		killed := ids[30]
		if r := p.process(t, "submit", "--key", "killed", "--withdrawal", killed, "--fault", "die-after"); r.exit != -1 {
			t.Fatal(r)
		}
		remounted(t, disk, size, syscall.MS_RDONLY)
		p.onReadOnlyMount(t, ids)
		remounted(t, disk, size, 0)

		var once sync.Once
		readOnly := func() { remounted(t, disk, size, syscall.MS_RDONLY) }
		results := p.submits(t, ids[:30], time.Minute, func(n int, r ran) {
			if n >= 5 {
				once.Do(readOnly)
			}
		})
		p.onReadOnlyMount(t, ids)
		left, refused := p.book(t), 0
		for i, r := range results {
			holder, state := p.state(t, ids[i])
			switch n := left[events.WithdrawalID(ids[i])]; {
			case r.exit == 0 && n == 1 && state == "sent" && holder == fmt.Sprintf("k-%d", i):
			case r.exit == 8 && n == 0 && state == "requested" && strings.Contains(r.stderr, "mounted read-only"):
				refused++
			default:
				t.Errorf("withdrawal %d is %s, held by %q, left %d times; it was told: %s", i, state, holder, n, r)
			}
		}
		if refused == 0 || refused == len(results) {
			t.Errorf("%d of %d submits met a read-only file system: that proves nothing", refused, len(results))
		}
		remounted(t, disk, size, 0)
		for i, r := range p.submits(t, ids[:30], time.Minute, func(int, ran) {}) {
			if r.exit != 0 || p.book(t)[events.WithdrawalID(ids[i])] != 1 {
				t.Errorf("withdrawal %d afterwards, left %d times: %s", i, p.book(t)[events.WithdrawalID(ids[i])], r)
			}
		}
		if _, state := p.state(t, killed); state != "sending" || p.left(t, killed) != 1 {
			t.Errorf("the killed one is %s", state)
		}
		p.verified(t)
		t.Logf("%d of %d submits met a read-only file system", refused, len(results))
	})
}

// The disk with the log fails under a process whose rail is at it. The claim was on the disk
// before, the process says that it does not know, and what others are told is no lie.
func TestDiskFailsDuringTheSend(t *testing.T) {
	t.Parallel()
	withOwnMounts(t, true, func(t *testing.T) {
		p := newTestProgram(t)
		disk, fail, again := onDevice(t)
		p.log = "sqlite:" + filepath.Join(disk, "log.db")
		ids := p.requests(t, 3)
		if r := p.process(t, "submit", "--key", "first", "--withdrawal", ids[2]); r.exit != 0 {
			t.Fatal(r)
		}
		cmd, err := self(t.Context(), "submit", "--log", p.log, "--rail", p.rail, "--key", "k", "--withdrawal", ids[0], "--fault", "timeout-after", "--timeout", "2s")
		if err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stage := &stage{call: newCall(p.program, nil), ctx: t.Context()}
		if !stage.eventually(func() bool { return p.book(t)[events.WithdrawalID(ids[0])] == 1 }) {
			t.Fatal("the money did not leave")
		}
		fail()
		wantSaid(t, p.process(t, "submit", "--key", "other", "--withdrawal", ids[1]), 8, "its file system is mounted read-only; find out why")
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != 5 || !strings.Contains(stderr.String(), "outcome-unknown") || !strings.Contains(stderr.String(), "the log did not take its answer") {
			t.Errorf("exit status %d: %s", got, &stderr)
		}
		again()
		if holder, state := p.state(t, ids[0]); holder != "k" || state == "requested" {
			t.Errorf("afterwards it is %s, held by %q", state, holder)
		}
		if r := p.process(t, "submit", "--key", "other", "--withdrawal", ids[0]); r.exit != 4 {
			t.Errorf("%s", r)
		}
		if r := p.process(t, "submit", "--key", "other", "--withdrawal", ids[1]); r.exit != 0 {
			t.Errorf("%s", r)
		}
		if n := p.book(t); n[events.WithdrawalID(ids[0])] != 1 || n[events.WithdrawalID(ids[1])] != 1 {
			t.Errorf("left: %v", n)
		}
		p.verified(t)
	})
}

// onReadOnlyMount runs every command on a file system that is mounted read-only.
func (p *testProgram) onReadOnlyMount(t *testing.T, ids []string) {
	t.Helper()
	before := len(p.book(t))
	id, killed := ids[len(ids)-2], ids[len(ids)-1]
	for _, args := range [][]string{
		{"submit", "--key", "other", "--withdrawal", id},
		{"request", "--account", "a", "--reference", "r", "--amount", "1", "--currency", "EUR", "--destination", "d"},
		{"request", "--log", p.log + ".new", "--account", "a", "--reference", "r", "--amount", "1", "--currency", "EUR", "--destination", "d"},
		{"release", "--key", "killed", "--reason", "r", "--evidence", "e", "--yes"},
		{"resolve", "--key", "killed", "--sent", "x", "--reason", "r", "--evidence", "e", "--yes"},
	} {
		wantSaid(t, p.process(t, args...), 8, "its file system is mounted read-only; find out why")
	}
	for _, args := range [][]string{
		{"claimed-by", "--withdrawal", killed}, {"outcome", "--key", "killed"}, {"in-flight"}, {"history", "--withdrawal", killed}, {"verify"},
	} {
		if r := p.process(t, args...); r.exit != 0 {
			t.Errorf("%v on a read-only file system: %s", args, r)
		}
	}
	if r := p.process(t, "doctor"); r.exit != 8 || !strings.Contains(r.stdout, "unavailable: access: the file system is mounted read-only") {
		t.Errorf("doctor on a read-only file system: %s", r)
	}
	if holder, state := p.state(t, killed); holder != "killed" || state != "sending" {
		t.Errorf("the killed submit's withdrawal is %s, held by %q", state, holder)
	}
	if after := len(p.book(t)); after != before {
		t.Errorf("%d payments left", after-before)
	}
}

// The disk with the log becomes full under processes that submit. What was sent has a
// claim on the disk, what could not be claimed was not sent, and once there is room
// everything goes on.
func TestFullDiskUnderProcesses(t *testing.T) {
	t.Parallel()
	withOwnMounts(t, false, func(t *testing.T) {
		p := newTestProgram(t)
		disk := mounted(t, "2m")
		p.log = "sqlite:" + filepath.Join(disk, "log.db")
		ids := p.requests(t, 40)
		ballast := filepath.Join(disk, "ballast")
		var mu sync.Mutex
		refused := 0
		// One that waits for room would do so for its whole patience.
		results := p.submits(t, ids, time.Second, func(n int, r ran) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case n == 10:
				fillUp(t, ballast)
			case r.exit != 0:
				if refused++; refused == 6 {
					free(t, ballast)
				}
			}
		})
		left, told := p.book(t), map[int]int{}
		for i, r := range results {
			told[r.exit]++
			n := left[events.WithdrawalID(ids[i])]
			if r.exit == 0 && n != 1 || r.exit == 8 && n != 0 || r.exit != 0 && r.exit != 8 && r.exit != 5 {
				t.Errorf("withdrawal %d left %d times; it was told: %s", i, n, r)
			}
		}
		if told[0] == 0 || told[8] == 0 {
			t.Errorf("exit statuses %v: that proves nothing", told)
		}
		for i := range results { // before anything is tried again
			holder, state := p.state(t, ids[i])
			if n := left[events.WithdrawalID(ids[i])]; n > 0 && (holder != fmt.Sprintf("k-%d", i) || state == "requested") {
				t.Errorf("withdrawal %d left and is %s, held by %q", i, state, holder)
			}
		}
		again := p.submits(t, ids, time.Minute, func(int, ran) {})
		left = p.book(t)
		for i, r := range again {
			n := left[events.WithdrawalID(ids[i])]
			// In flight is what nobody knows: the send ended without an answer, or the claim
			// was written and nobody was told so; then nothing was sent.
			open := r.exit == 5 && (results[i].exit == 5 && n <= 1 || results[i].exit == 8 && n == 0)
			if _, state := p.state(t, ids[i]); r.exit == 0 && (n != 1 || state != "sent") || r.exit != 0 && !open {
				t.Errorf("withdrawal %d is %s and left %d times; told first %s, then %s", i, state, n, results[i], r)
			}
		}
		p.verified(t)
		t.Logf("exit statuses on the full disk: %v", told)
	})
}

// fillUp writes a file until the disk has no room.
func fillUp(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	for size := 64 << 10; size > 0; {
		if _, err := file.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Error(err)
			return
		}
	}
}

func free(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}
