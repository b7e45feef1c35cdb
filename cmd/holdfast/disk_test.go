package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast/events"
	"holdfast/rail/simulated"
)

// smallDisk moves the program's log to a file system of its own, of so many KiB, and
// returns where that is.
func smallDisk(t *testing.T, p *testProgram, kib int) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dk", kib), "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("this user may not mount a file system, so no disk of a real process is filled or made read-only: %s", bytes.TrimSpace(out))
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	p.log = "sqlite:" + filepath.Join(dir, "log.db")
	return dir
}

// process runs the program as a process of its own.
func (p *testProgram) process(t *testing.T, args ...string) (exit int, output string) {
	t.Helper()
	cmd, err := self(t.Context(), append(args, "--log", p.log, "--actor", "ann")...)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// requests requests so many withdrawals, by one process each.
func (p *testProgram) requests(t *testing.T, n int) (ids []string) {
	t.Helper()
	for i := range n {
		exit, out := p.process(t, "request", "--account", "a", "--reference", fmt.Sprint("r-", i), "--amount", "1", "--currency", "EUR", "--destination", "d")
		if exit != 0 {
			t.Fatal(out)
		}
		ids = append(ids, strings.Fields(out[strings.Index(out, "Withdrawal:"):])[1])
	}
	return ids
}

// departures counts how often each withdrawal has left, by the rail's own book.
func (p *testProgram) departures(t *testing.T) map[events.WithdrawalID]int {
	t.Helper()
	left, err := simulated.Count(strings.TrimPrefix(p.rail, simulatedScheme))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return left
}

// A disk that is full while real processes pay: nothing leaves without a claim that is on
// the disk, and once there is room again everything is paid that was not, once.
func TestFullDiskUnderRealProcesses(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	dir := smallDisk(t, p, 3000)
	ids := p.requests(t, 4)
	filler := filepath.Join(dir, "filler")
	fillDisk(t, filler, 40<<10)

	var mu sync.Mutex
	full := 0
	var submits sync.WaitGroup
	for i, id := range ids {
		submits.Go(func() {
			exit, out := p.process(t, "submit", "--key", fmt.Sprint("k-", i), "--withdrawal", id, "--rail", p.rail)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case exit == 0:
			case exit != 5 && exit != 8 || !strings.Contains(out, "full"):
				t.Errorf("exit %d does not say that the disk is full: %s", exit, out)
			default:
				full++
			}
		})
	}
	submits.Wait()
	if full == 0 {
		t.Fatal("the disk was never full: there was nothing to see")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}

	// Each that left is claimed in the log, under its own key.
	for id, n := range p.departures(t) {
		exit, out := p.process(t, "claimed-by", "--withdrawal", string(id))
		if n != 1 || exit != 0 || !strings.Contains(out, "k-") {
			t.Errorf("withdrawal %s left %d times: %s", id, n, out)
		}
	}
	for i, id := range ids {
		exit, out := p.process(t, "submit", "--key", fmt.Sprint("k-", i), "--withdrawal", id, "--rail", p.rail)
		if exit != 0 && exit != 5 {
			t.Errorf("exit %d with room on the disk: %s", exit, out)
		}
	}
	p.paidOnce(t, ids)
}

// paidOnce checks that every withdrawal has left once, and that the log is sound.
func (p *testProgram) paidOnce(t *testing.T, ids []string) {
	t.Helper()
	left := p.departures(t)
	for _, id := range ids {
		if n := left[events.WithdrawalID(id)]; n != 1 {
			t.Errorf("withdrawal %s left %d times", id, n)
		}
	}
	if exit, out := p.process(t, "verify"); exit != 0 || len(left) != len(ids) {
		t.Errorf("%d withdrawals left; verify: exit %d: %s", len(left), exit, out)
	}
}

// fillDisk leaves so many bytes of room on a disk.
func fillDisk(t *testing.T, path string, room int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, zeros := int64(0), make([]byte, 4096)
	for err == nil {
		var n int
		n, err = f.Write(zeros)
		size += int64(n)
	}
	if err := f.Truncate(max(0, size-room)); err != nil {
		t.Fatal(err)
	}
}

// A file system that is remounted read-only: what is paid was paid, look-ups still tell
// the truth, a submit is refused and sends nothing; and once it can be written again all
// goes on.
func TestReadOnlyRemountUnderRealProcesses(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	dir := smallDisk(t, p, 16<<10)
	remount := func(how string) {
		t.Helper()
		if out, err := exec.Command("mount", "-o", "remount,"+how, dir).CombinedOutput(); err != nil {
			t.Fatalf("remount: %s", out)
		}
	}
	ids := p.requests(t, 2)
	submit := func(key, id string) (int, string) {
		t.Helper()
		return p.process(t, "submit", "--key", key, "--withdrawal", id, "--rail", p.rail)
	}
	if exit, out := submit("k-0", ids[0]); exit != 0 {
		t.Fatal(out)
	}
	remount("ro")
	for key, id := range map[string]string{"k-1": ids[1], "k-0": ids[0]} {
		exit, out := submit(key, id)
		if exit != 2 && exit != 8 || !strings.Contains(out, "read-only") {
			t.Errorf("%s, read-only: exit %d: %s", key, exit, out)
		}
	}
	if exit, out := p.process(t, "outcome", "--key", "k-0"); exit != 0 || !strings.Contains(out, "sent") {
		t.Errorf("outcome, read-only: exit %d: %s", exit, out)
	}
	if exit, out := p.process(t, "verify"); exit != 0 {
		t.Errorf("verify, read-only: exit %d: %s", exit, out)
	}
	if left := p.departures(t); len(left) != 1 {
		t.Errorf("%v left", left)
	}
	remount("rw")
	if exit, out := submit("k-1", ids[1]); exit != 0 {
		t.Error(out)
	}
	p.paidOnce(t, ids)
}
