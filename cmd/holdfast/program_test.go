package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
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
		env:      func(string) string { return "" },
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
	var stdout, stderr bytes.Buffer
	q := *p.program
	q.stdin, q.stdout, q.stderr = strings.NewReader(p.input), &stdout, &stderr
	env := q.env
	q.env = func(name string) string {
		switch name {
		case "HOLDFAST_LOG":
			return p.log
		case "HOLDFAST_RAIL":
			return p.rail
		}
		return env(name)
	}
	exit := q.run(ctx, args)
	return ran{exit: exit, stdout: stdout.String(), stderr: stderr.String()}
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
		{"typed", true, "TOKEN\n", nil, 0, "To release it"},
		{"typed without a newline", true, "TOKEN", nil, 0, "type TOKEN"},
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
		p.env = func(name string) string { return map[string]string{"NO_COLOR": tt.noColour}[name] }
		r := p.run(t, "outcome")
		if got := strings.Contains(r.stderr, "\x1b["); got != tt.want || !strings.Contains(r.stderr, "Error:") {
			t.Errorf("terminal %v, NO_COLOR %q: %q", tt.terminal, tt.noColour, r.stderr)
		}
	}
}

// meanwhile is a rail that is slow enough for something else to happen.
type meanwhile struct {
	rail.Rail
	happens func()
}

func (r meanwhile) Send(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
	r.happens()
	return r.Rail.Send(ctx, p)
}

// TestDisputed: a person says that nothing left while the rail is at it, and then it
// answers that it did (B7). It is shown first, nothing else is accepted, and a person
// closes it.
func TestDisputed(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	id := p.requestOne(t)
	resolve := []string{"resolve", "--key", "k", "--failed", "--reason", "r", "--evidence", "e", "--yes"}
	p.openRail = func(q *program, spec, fault string) (rail.Rail, error) {
		r, err := openRail(q, spec, fault)
		return meanwhile{r, func() {
			if r := p.run(t, resolve...); r.exit != 0 {
				t.Error(r)
			}
		}}, err
	}
	r := p.run(t, "submit", "--key", "k", "--withdrawal", id)
	if !r.refused(4, "disputed") || r.fact("Try") != "holdfast history --withdrawal "+id {
		t.Errorf("%s", r)
	}
	p.openRail = openRail
	if r := p.run(t, "in-flight"); r.exit != 0 || !strings.Contains(r.stdout, "disputed") || !strings.Contains(r.stdout, " resolve") {
		t.Errorf("%s", r)
	}
	if r := p.run(t, "outcome", "--key", "k"); r.fact("Result") != "failed" || !strings.Contains(r.fact("Rail's late answer"), "sent sim-") {
		t.Errorf("%s", r)
	}
	if r := p.run(t, "in-flight", "--json"); !strings.Contains(r.stdout, `"disputed":true`) || !strings.Contains(r.stdout, `"dispute":{"since":`) {
		t.Errorf("%s", r)
	}
	if r := p.run(t, append(resolve, "--rail", p.rail)...); r.exit != 0 || !strings.Contains(r.stderr, "Warning: the rail says that the money left") {
		t.Errorf("%s", r)
	}
	if r := p.run(t, "in-flight"); r.stdout != "Nothing is in flight.\n" {
		t.Errorf("%s", r)
	}
}
