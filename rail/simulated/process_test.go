package simulated_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/rail/simulated"
)

// child is this test binary, to be started on a task: see TestMain.
func child(t *testing.T, task, path, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childTask+"="+task, childBook+"="+path, childName+"="+name,
		"GORACE=atexit_sleep_ms=0") // the race detector would wait a second at each exit
	return cmd
}

// runChildren runs so many children on a task, lets them start at the same moment, and
// returns the lines that each printed.
func runChildren(t *testing.T, n int, task, path string) [][]string {
	t.Helper()
	ready, readyChild := pipe(t)
	gateChild, gate := pipe(t)
	cmds := make([]*exec.Cmd, n)
	stdout := make([]bytes.Buffer, n)
	stderr := make([]bytes.Buffer, n)
	for i := range n {
		cmds[i] = child(t, task, path, strconv.Itoa(i))
		cmds[i].Env = append(cmds[i].Env, childGate+"=1")
		cmds[i].ExtraFiles = []*os.File{readyChild, gateChild}
		cmds[i].Stdout, cmds[i].Stderr = &stdout[i], &stderr[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	readyChild.Close()
	if _, err := io.Copy(io.Discard, ready); err != nil { // until the last child closes it
		t.Fatal(err)
	}
	gate.Close()
	printed := make([][]string, n)
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("child %d: %v\n%s", i, err, &stderr[i])
		}
		printed[i] = strings.Fields(stdout[i].String())
	}
	return printed
}

// pipe returns the two ends of a pipe, closed with the test at the latest.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

func TestProcessesShareABook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.jsonl")
	printed := runChildren(t, 8, "pay-50", path)

	book, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(book, []byte("\n")); n != 400 {
		t.Errorf("the book has %d lines, want 400", n)
	}
	booked := make(map[string]bool)
	withdrawals := make(map[string]bool)
	for _, e := range allEntries(t, path) {
		booked[e.Reference] = true
		withdrawals[string(e.Withdrawal)] = true
	}
	if len(booked) != 400 || len(withdrawals) != 400 {
		t.Errorf("the book has %d references and %d withdrawals, want 400 of each", len(booked), len(withdrawals))
	}
	for i, references := range printed {
		if len(references) != 50 {
			t.Errorf("child %d was told of %d payments, want 50", i, len(references))
		}
		for _, reference := range references {
			if !booked[reference] {
				t.Errorf("child %d was told of %s, which is not in the book", i, reference)
			}
		}
	}
}

func TestProcessesShareTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.jsonl")
	printed := runChildren(t, 4, "pay-20-tokens", path)

	told := make(map[string]int)
	for i, references := range printed {
		if len(references) != 80 {
			t.Errorf("child %d was told of %d payments, want 80", i, len(references))
		}
		for _, reference := range references {
			told[reference]++
		}
	}
	booked := allEntries(t, path)
	if len(booked) != 20 {
		t.Errorf("the book has %d entries, want one for each of 20 tokens", len(booked))
	}
	for _, e := range booked {
		if told[e.Reference] != 16 {
			t.Errorf("%d sends with token %s were told of %s, want all 16", told[e.Reference], e.Token, e.Reference)
		}
	}
}

func TestKilledWhilePaying(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.jsonl")
	for round := range 3 {
		cmd := child(t, "pay-for-ever", path, strconv.Itoa(round))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(out)
		var told []string
		for {
			reference, err := r.ReadString('\n')
			if err == io.EOF {
				break // what it had of a line was not acknowledged in full
			}
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, strings.TrimSuffix(reference, "\n"))
			if len(told) == 25 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		wantKilled(t, cmd)

		booked := make(map[string]bool)
		for _, e := range allEntries(t, path) {
			booked[e.Reference] = true
		}
		if len(told) < 25 {
			t.Errorf("round %d: the child was told of %d payments, want 25 at least", round, len(told))
		}
		for _, reference := range told {
			if !booked[reference] {
				t.Errorf("round %d: the child was told of %s, which is not in the book", round, reference)
			}
		}
	}
}

func TestProcessDies(t *testing.T) {
	for _, tt := range []struct {
		fault simulated.Fault
		left  int
	}{
		{simulated.FaultDieBefore, 0},
		{simulated.FaultDieAfter, 1},
	} {
		t.Run(string(tt.fault), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "book.jsonl")
			cmd := child(t, string(tt.fault), path, "")
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wantKilled(t, cmd)
			if stdout.Len() != 0 {
				t.Errorf("the child was told of a payment: %s", &stdout)
			}
			if n := len(allEntries(t, path)); n != tt.left {
				t.Errorf("%d payments left, want %d", n, tt.left)
			}
		})
	}
}

func TestFullDiskLeavesTheBookWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.jsonl")
	runChildren(t, 1, "full-disk", path)
	booked := allEntries(t, path)
	if len(booked) != 1 || booked[0].Withdrawal != "w-room" {
		t.Errorf("the book is %v, want the payment there was room for", booked)
	}
}

// wantKilled waits for the child, and checks that SIGKILL ended it.
func wantKilled(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	err := cmd.Wait()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v, want SIGKILL", err)
	}
}

// allEntries reads a sound book.
func allEntries(t *testing.T, path string) []simulated.Entry {
	t.Helper()
	var all []simulated.Entry
	for e, err := range simulated.Entries(path) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}
