package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"holdfast/events"
	"holdfast/rail"
	"holdfast/rail/simulated"
)

// testProgram is a program within the test's process, in a folder of its own. Once it is
// deterministic its clock only moves when a test moves it, and its ids and references
// count.
type testProgram struct {
	*program
	dir, log, rail string
	clock          time.Time
	input          string
	atTerminal     bool
}

func newTestProgram(t *testing.T) *testProgram {
	t.Helper()
	p := &testProgram{dir: t.TempDir(), clock: time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)}
	p.log, p.rail = "sqlite:"+filepath.Join(p.dir, "log.db"), "simulated:"+filepath.Join(p.dir, "book.jsonl")
	p.program = &program{
		env:      func(string) (string, bool) { return "", false },
		user:     func() string { return "ann@desk" },
		terminal: func(any) bool { return p.atTerminal },
		now:      time.Now,
		newID:    uuid.New,
		openLog:  openLog,
		openRail: openRail,
		self:     func(ctx context.Context, args ...string) (*exec.Cmd, error) { return self(ctx, args...) },
	}
	return p
}

// deterministic makes everything the program says the same each time.
func (p *testProgram) deterministic() {
	ids, references := uint64(0), 0
	p.now = func() time.Time { return p.clock }
	p.newID = func() (id uuid.UUID) {
		ids++
		binary.BigEndian.PutUint64(id[8:], ids)
		return id
	}
	p.openRail = func(q *program, spec, fault string) (rail.Rail, error) {
		file, err := bookOf(spec)
		if err != nil {
			return nil, err
		}
		return simulated.Open(file, &simulated.Options{
			Now:   p.now,
			Fault: func(rail.Payment) simulated.Fault { return simulated.Fault(fault) },
			NewReference: func() string {
				references++
				return fmt.Sprintf("sim-%d", references)
			},
		})
	}
}

// run runs a command on the program's own log and rail.
func (p *testProgram) run(t *testing.T, args ...string) ran {
	t.Helper()
	return p.runWith(t.Context(), args...)
}

func (p *testProgram) runWith(ctx context.Context, args ...string) ran {
	var stdout bytes.Buffer
	var stderr lines
	q := *p.program
	q.stdin, q.stdout, q.stderr = strings.NewReader(p.input), &stdout, &stderr
	env := q.env
	q.env = func(name string) (string, bool) {
		switch name {
		case "HOLDFAST_LOG":
			return p.log, true
		case "HOLDFAST_RAIL":
			return p.rail, true
		}
		return env(name)
	}
	exit := q.run(ctx, args)
	return ran{exit: exit, stdout: stdout.String(), stderr: stderr.String()}
}

// lines is a standard error that an attempt may still write to when the command is over.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// requestOne requests a withdrawal and returns its id.
func (p *testProgram) requestOne(t *testing.T) string {
	t.Helper()
	r := p.run(t, "request", "--account", "alice", "--reference", "order-1", "--amount", "10.25", "--currency", "EUR", "--destination", "DE89")
	if r.exit != 0 {
		t.Fatal(r)
	}
	return r.fact("Withdrawal")
}

func (p *testProgram) left(t *testing.T, id string) int {
	t.Helper()
	counts, err := simulated.Count(filepath.Join(p.dir, "book.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return counts[events.WithdrawalID(id)]
}

// twice is a rail that pays twice.
type twice struct{ rail.Rail }

func (r twice) Send(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
	if _, err := r.Rail.Send(ctx, p); err != nil {
		return rail.Receipt{}, err
	}
	return r.Rail.Send(ctx, p)
}

// TestDemoNoticesARailThatPaysTwice shows that the demo's checks can fail.
func TestDemoNoticesARailThatPaysTwice(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	p.openRail = func(q *program, spec, fault string) (rail.Rail, error) {
		r, err := openRail(q, spec, fault)
		return twice{r}, err
	}
	r := p.run(t, "demo")
	if r.exit != 7 || !strings.Contains(r.stdout, "✗ FAILED: the rail's book: the money left once") || !strings.Contains(r.stderr, "step 2 of the demo") {
		t.Errorf("%s", r)
	}
}

func TestConfirmation(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		terminal bool
		input    string
		flags    []string
		exit     int
		says     string
	}{
		{"typed", true, "TOKEN\n", nil, 0, "Releasing says that nothing was sent. Type TOKEN to release: "},
		{"typed without a newline", true, "TOKEN", nil, 0, "Type TOKEN"},
		{"typed wrongly", true, "yes\n", nil, 2, "the confirmation was not TOKEN; nothing was written"},
		{"nothing typed", true, "", nil, 2, "there was no confirmation"},
		{"no terminal", false, "TOKEN\n", nil, 2, "--confirm TOKEN"},
		{"yes", false, "", []string{"--yes"}, 0, "Can be done"},
		{"token", false, "", []string{"--confirm", "TOKEN"}, 0, "Can be done"},
		{"token on a terminal", true, "", []string{"--confirm", "TOKEN"}, 0, "Can be done"},
		{"another token", false, "", []string{"--confirm", "abcdef"}, 2, "does not confirm"},
		{"another token, and yes", false, "", []string{"--confirm", "abcdef", "--yes"}, 2, "does not confirm"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newTestProgram(t)
			id := p.requestOne(t)
			token := id[len(id)-tokenLength:]
			if r := p.run(t, "submit", "--key", "k", "--withdrawal", id, "--fault", "error-before"); r.exit != 5 {
				t.Fatal(r)
			}
			p.atTerminal, p.input = tt.terminal, strings.ReplaceAll(tt.input, "TOKEN", token)
			args := []string{"release", "--key", "k", "--reason", "r", "--evidence", "e"}
			for _, flag := range tt.flags {
				args = append(args, strings.ReplaceAll(flag, "TOKEN", token))
			}
			r := p.run(t, args...)
			if r.exit != tt.exit || !strings.Contains(r.stderr, strings.ReplaceAll(tt.says, "TOKEN", token)) {
				t.Errorf("%s", r)
			}
			if released := p.run(t, "outcome", "--key", "k").exit == 3; released != (tt.exit == 0) {
				t.Errorf("released: %v, and the exit status was %d", released, r.exit)
			}
		})
	}
}

// TestActorOfAPersonsWord: where the system does not say who acts, somebody has to (B6).
func TestActorOfAPersonsWord(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	p.user = func() string { return "" }
	id := p.requestOne(t)
	resolve := []string{"resolve", "--key", "k", "--withdrawal", id, "--failed", "--reason", "r", "--evidence", "e", "--yes"}
	if r := p.run(t, resolve...); r.exit != 2 || !strings.Contains(r.stderr, "--actor") {
		t.Errorf("%s", r)
	}
	if r := p.run(t, append(resolve, "--actor", "bob")...); r.exit != 0 || r.fact("Resolved by") != "bob, who looked" {
		t.Errorf("%s", r)
	}
}

// TestColour: on a terminal, unless NO_COLOR is set, and never as the only sign.
func TestColour(t *testing.T) {
	for _, tt := range []struct {
		terminal bool
		noColour string
		want     bool
	}{{true, "", true}, {true, "1", false}, {false, "", false}} {
		p := newTestProgram(t)
		p.atTerminal = tt.terminal
		p.env = func(name string) (string, bool) {
			value, set := map[string]string{"NO_COLOR": tt.noColour}[name]
			return value, set
		}
		r := p.run(t, "outcome")
		if got := strings.Contains(r.stderr, "\x1b["); got != tt.want || !strings.Contains(r.stderr, "Error:") {
			t.Errorf("terminal %v, NO_COLOR %q: %q", tt.terminal, tt.noColour, r.stderr)
		}
	}
}

// broken is a standard output that takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestUnprinted: a result that could not be printed is not said to be undone.
func TestUnprinted(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	id := p.requestOne(t)
	var stderr bytes.Buffer
	q := *p.program
	q.stdin, q.stdout, q.stderr = strings.NewReader(""), broken{}, &stderr
	exit := q.run(t.Context(), []string{"submit", "--log", p.log, "--rail", p.rail, "--key", "k", "--withdrawal", id})
	r := ran{exit: exit, stderr: stderr.String()}
	wantSaid(t, r, 8, "Error: the result could not be printed; what was done stands: no space left on device (unavailable)\nTry: holdfast submit ")
	if strings.Contains(r.stderr, "could not be done") || p.left(t, id) != 1 {
		t.Errorf("%s", r)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"request", "submit", "outcome", "claimed-by", "in-flight", "demo", "verify", "key", "json"}
	for word, want := range map[string]string{
		"otcome": "outcome", "sumbit": "submit", "claimedby": "claimed-by", "inflight": "in-flight", "kye": "key", "verfy": "verify",
		"bogus": "", "nope": "", "x": "", "": "", "submission": "",
	} {
		if got, _ := nearest(word, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestAge: what waits is listed in the order of the ages that are shown, which are those
// of the claims.
func TestAge(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	p.deterministic()
	id := p.requestOne(t)
	open := p.openRail
	p.openRail = func(q *program, spec, fault string) (rail.Rail, error) {
		r, err := open(q, spec, fault)
		return meanwhile{r, func() { p.clock = p.clock.Add(20 * time.Second) }}, err
	}
	if r := p.run(t, "submit", "--key", "k", "--withdrawal", id, "--fault", "refuse"); r.exit != 5 {
		t.Fatal(r)
	}
	p.clock = p.clock.Add(time.Second)
	if r := p.run(t, "in-flight"); !strings.Contains(r.stdout, "refused  21s  k ") {
		t.Errorf("%s", r)
	}
}

// TestRemaining: who comes back after the time that is shown is not early.
func TestRemaining(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1: "1s", time.Second: "1s", 59*time.Second + 1: "1m0s", 89999 * time.Millisecond: "1m30s", time.Hour + 1: "1h0m1s",
	} {
		if got := remaining(d); got != want {
			t.Errorf("remaining(%d) = %q, want %q", d, got, want)
		}
	}
}

// TestPrompt: what is typed is asked for with what it will mean.
func TestPrompt(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	id := p.requestOne(t)
	p.atTerminal = true
	for _, tt := range []struct{ flag, says string }{
		{"--failed", "Resolving as failed says that nothing left, and gives the withdrawal up. Type " + id[len(id)-tokenLength:] + " to resolve: "},
		{"--sent=x-1", "Resolving as sent says that the money left, under the rail's reference x-1. Type "},
	} {
		wantSaid(t, p.run(t, "resolve", "--key", "k", "--withdrawal", id, tt.flag, "--reason", "r", "--evidence", "e"), 2, tt.says)
	}
	r := p.run(t, "resolve", "--key", "k", "--withdrawal", id, "--failed", "--amount", "99", "--reason", "r", "--evidence", "e")
	wantSaid(t, r, 4, "(details-differ)")
	if strings.Contains(r.stderr, "Type ") {
		t.Errorf("it asks before it looks\n%s", r)
	}
}
