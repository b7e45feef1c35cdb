package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast/rail"
)

// meanwhile is a rail that is slow enough for something else to happen.
type meanwhile struct {
	rail.Rail
	happens func()
}

func (r meanwhile) Send(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
	r.happens()
	return r.Rail.Send(ctx, p)
}

// dispute makes a withdrawal disputed: a person speaks while the rail is at it, and then
// it answers that the money left (B7).
func (p *testProgram) dispute(t *testing.T, id string, word ...string) {
	t.Helper()
	opened := p.openRail
	p.openRail = func(q *program, spec, fault string) (rail.Rail, error) {
		r, err := opened(q, spec, fault)
		return meanwhile{r, func() {
			p.openRail = opened
			if r := p.run(t, word...); r.exit != 0 {
				t.Error(r)
			}
		}}, err
	}
	r := p.run(t, "submit", "--key", "k", "--withdrawal", id)
	if !r.refused(4, "disputed") || r.fact("Try") != "holdfast claimed-by --withdrawal "+id {
		t.Errorf("%s", r)
	}
	p.openRail = opened
}

// wantSaid checks that a run went well and that all of these are in what it said.
func wantSaid(t *testing.T, r ran, exit int, said ...string) {
	t.Helper()
	for _, want := range said {
		if !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if r.exit != exit || t.Failed() {
		t.Fatalf("want exit status %d\n%s", exit, r)
	}
}

// fill fills in what a command line that is to be tried leaves open.
func fill(line string) []string {
	line = strings.NewReplacer("REASON", "seen", "EVIDENCE", "'the book'", "KEY", "any", "REFERENCE", "r").Replace(line)
	return words(strings.TrimPrefix(line, "holdfast "))
}

// TestDisputed: a person says that nothing left while the rail is at it, and then it
// answers that it did (B7). It is shown first, with the command line that closes it, and
// stays in sight once a person has closed it.
func TestDisputed(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	id := p.requestOne(t)
	p.dispute(t, id, "resolve", "--key", "k", "--failed", "--reason", "r", "--evidence", "e", "--yes")
	closing := "holdfast resolve --key k --withdrawal " + id + " --failed --against-the-rail --reason REASON --evidence EVIDENCE"

	wantSaid(t, p.run(t, "in-flight"), 0, "disputed", " k ", " resolve\n", "holdfast claimed-by --withdrawal ID")
	wantSaid(t, p.run(t, "in-flight", "--json"), 0, `"disputed":true`, `"dispute":{"since":`, `"late_answers":[{"at":"`, `"closed_disputes":[]`)
	outcome := p.run(t, "outcome", "--key", "k")
	wantSaid(t, outcome, 0, "failed", "(attempt 1, under key k), after the record said otherwise", "close it with: "+closing+"\n")
	wantSaid(t, p.run(t, "claimed-by", "--withdrawal", id), 0, "First look at the rail for token "+id+". Then:\n  "+closing+"\n")

	wantSaid(t, p.run(t, "verify"), 0, "Clean: ", "1 dispute is open for tenant default, which waits for a person: holdfast in-flight\n")
	wantSaid(t, p.run(t, "submit", "--key", "k", "--withdrawal", id), 0,
		"Warning: the rail contradicts this outcome", "Try: holdfast claimed-by --withdrawal "+id+"\n")
	closed := p.run(t, append(fill(closing), "--yes")...)
	wantSaid(t, closed, 0, "the dispute is closed")
	if want, _, _ := strings.Cut(outcome.stdout, "Token"); fieldsOf(closed.stdout) != fieldsOf(want) {
		t.Errorf("closing a dispute prints\n%s, want\n%s", closed.stdout, want)
	}
	if r := p.run(t, "in-flight"); !strings.HasPrefix(r.stdout, "Nothing is in flight") {
		t.Errorf("%s", r)
	}
	wantSaid(t, p.run(t, "outcome", "--key", "k"), 0, "after the record said otherwise", "by ann@desk at ", ": seen (the book)")
	wantSaid(t, p.run(t, "claimed-by", "--withdrawal", id, "--json"), 0,
		`"contradicts":true}]`, `"closed_disputes":[{"since":"`, `"closed_by":"ann@desk","reason":"seen","evidence":"the book"}]`)
	replay := p.run(t, "submit", "--key", "k", "--withdrawal", id, "--json")
	wantSaid(t, replay, 0, `{"note":"Warning: the rail contradicts this outcome`)
	if first := p.run(t, "resolve", "--key", "k", "--failed", "--reason", "x", "--evidence", "x", "--json"); first.stdout != replay.stdout {
		t.Errorf("a replay of what is disputed is\n%s, want\n%s", replay, first)
	}
}

// fieldsOf is a text without its layout.
func fieldsOf(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestDisputedAndHeldByNobody: a claim that was released while the rail was at it. Any
// key closes that dispute, and the advice works.
func TestDisputedAndHeldByNobody(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	p.now = func() time.Time { return time.Now() }
	id := p.requestOne(t)
	p.openRail = func(q *program, spec, fault string) (rail.Rail, error) {
		r, err := openRail(q, spec, fault)
		return meanwhile{r, func() {
			p.now = func() time.Time { return time.Now().Add(time.Hour) } // another clock: its attempt is over
			wantSaid(t, p.run(t, "release", "--key", "k", "--reason", "r", "--evidence", "e", "--yes"), 0, "Released")
		}}, err
	}
	if r := p.run(t, "submit", "--key", "k", "--withdrawal", id); r.exit == 0 {
		t.Fatal(r)
	}
	p.openRail = openRail
	wantSaid(t, p.run(t, "in-flight"), 0, "disputed", "resolve with --withdrawal "+id+" and any key")
	r := p.run(t, "claimed-by", "--withdrawal", id)
	_, line, _ := strings.Cut(r.stdout, ". Then:\n  ")
	wantSaid(t, p.run(t, append(fill(strings.TrimSpace(line)), "--yes")...), 0, "the dispute is closed", "sent")
	wantSaid(t, p.run(t, "claimed-by", "--withdrawal", id), 0, "Dispute closed:", "Late answer:")
}
