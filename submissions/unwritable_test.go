package submissions_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// obey does what the lines of standard input say, and says on standard output when each is
// done: "break" and "mend" have the system refuse, and take, what this process writes to
// files; "submit KEY WITHDRAWAL" submits, and with "then-break" behind it the files break
// while the rail is at it. The rail says "left WITHDRAWAL" when the money leaves.
func (c child) obey(ctx context.Context, log eventlog.Log) error {
	signal.Ignore(syscall.SIGXFSZ)
	ledger, err := submissions.New(log, &submissions.Options{Patience: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		said := "ok"
		switch words[0] {
		case "break":
			err = writable(false)
		case "mend":
			err = writable(true)
		case "submit":
			_, refusal := ledger.Submit(ctx, events.RequestKey(words[1]), events.WithdrawalID(words[2]), func(_ context.Context, p rail.Payment) (rail.Receipt, error) {
				fmt.Println("left", p.Withdrawal)
				if slices.Contains(words, "then-break") {
					return rail.Receipt{Reference: "tx-" + words[1]}, writable(false)
				}
				return rail.Receipt{Reference: "tx-" + words[1]}, nil
			}, nil)
			if code, refused := submissions.CodeOf(refusal); refused {
				said = string(code)
			}
		}
		if err != nil {
			return err
		}
		fmt.Println("done", said)
	}
	if err := ledger.Close(ctx); err != nil {
		return err
	}
	return log.Close()
}

// writable sets whether the system takes what this process writes to files.
func writable(yes bool) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if limit.Cur = limit.Max; !yes {
		limit.Cur = 0
	}
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// servant is a process that obeys.
type servant struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	left []events.WithdrawalID
}

func (p *place) servant(t *testing.T) *servant {
	t.Helper()
	s := &servant{cmd: child{Log: p.path, Book: p.book, Obeys: true}.command(t)}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewScanner(out)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// tell gives an order, and fails the test unless what comes of it is what is wanted.
func (s *servant) tell(t *testing.T, want submissions.Code, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		t.Fatalf("%v\n%s", err, s.cmd.Stderr)
	}
	for s.out.Scan() {
		words := strings.Fields(s.out.Text())
		if words[0] == "left" {
			s.left = append(s.left, events.WithdrawalID(words[1]))
			continue
		}
		if words[1] != string(want) {
			t.Errorf(format+": told %s, want %s", append(args, words[1], want)...)
		}
		return
	}
	t.Fatalf("it ended: %s", s.cmd.Stderr)
}

// end lets the process come to its end, once it has recorded what it knows.
func (s *servant) end(t *testing.T) {
	t.Helper()
	if err := s.in.Close(); err != nil {
		t.Error(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, s.cmd.Stderr)
	}
}

// The system no longer takes what a running process writes to the log's files, as when the
// file system has become read-only or full under it. Nothing is sent without a claim in
// the log; an answer that cannot be recorded is kept, and recorded once it can be.
func TestA7FilesThatCannotBeWritten(t *testing.T) {
	p := newPlace(t, onSQLite, nil)
	var ids []events.WithdrawalID
	for i := range 4 {
		ids = append(ids, p.request(t, fmt.Sprintf("order-%d", i)))
	}
	s := p.servant(t)
	s.tell(t, "ok", "submit k0 %s", ids[0])
	s.tell(t, "ok", "break")
	for range 3 {
		s.tell(t, aggregate.CodeUnavailable, "submit k1 %s", ids[1])
	}
	s.tell(t, "ok", "submit k0 %s", ids[0]) // what is there is read
	s.tell(t, aggregate.CodeWithdrawalClaimed, "submit k9 %s", ids[0])
	if !slices.Equal(s.left, ids[:1]) {
		t.Errorf("left: %v", s.left)
	}
	// The others can write meanwhile.
	taken(t)(p.Submit(t.Context(), "k3", ids[3], p.rail.Send, nil))
	s.tell(t, "ok", "mend")
	s.tell(t, "ok", "submit k1 %s", ids[1])
	s.tell(t, aggregate.CodeWithdrawalClaimed, "submit k4 %s", ids[3])

	s.tell(t, aggregate.CodeOutcomeUnknown, "submit k2 %s then-break", ids[2])
	if status, err := p.Outcome(t.Context(), "k2"); err != nil || status.State != aggregate.StateSending {
		t.Errorf("the claim of what was sent: %+v, %v", status, err)
	}
	s.tell(t, aggregate.CodeInFlight, "submit k2 %s", ids[2])
	s.tell(t, "ok", "mend")
	s.end(t)
	if status, err := p.Outcome(t.Context(), "k2"); err != nil || status.State != aggregate.StateSent || status.Outcome.Reference != "tx-k2" {
		t.Errorf("the answer, once it can be recorded: %+v, %v", status, err)
	}
	if !slices.Equal(s.left, ids[:3]) {
		t.Errorf("left: %v, want %v, each once", s.left, ids[:3])
	}
	p.verify(t)
}
