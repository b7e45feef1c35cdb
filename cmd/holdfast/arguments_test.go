package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"

	"holdfast/aggregate"
	"holdfast/events"
)

// vocabulary is what command lines are made of, and what they are not.
func vocabulary(id string) []string {
	return []string{
		"request", "submit", "outcome", "claimed-by", "in-flight", "resolve", "release", "history", "verify", "doctor", "rail-book", "version",
		"--key", "--key=k", "--key=", "k", "--withdrawal", id, "--withdrawal=" + id, "--amount", "10.25", "1e9", "--currency", "EUR",
		"--destination", "DE89", "--account", "alice", "--reference", "order-1", "--rail", "--fault", "refuse", "error-after", "panic-before",
		"--timeout", "1ms", "-1s", "--sent", "--sent=x", "--failed", "--failed=false", "--reason", "--reason=r", "--evidence=e", "--yes",
		"--confirm", "--json", "--json=1", "-json", "--raw", "--help", "-h", "--log", "memory:", "sqlite:", "sqlite:.", "nonsense:x",
		"--tenant", "t", "--actor=bob", "--", "-", "---", "", " ", "\x00", "é", "\xff", "--=", "=", "--nope", "help", "--generate-bash-completion",
		strings.Repeat("x", 300),
	}
}

// wantSane runs a command line and checks what holds for every one: no panic, an exit
// status of the table, an error exactly when it is not 0, and nothing on standard output
// beside a usage error.
func wantSane(t *testing.T, p *testProgram, args []string) {
	t.Helper()
	r := p.runWith(context.Background(), args...)
	known := r.exit == 0
	for _, row := range aggregate.Codes() {
		known = known || r.exit == row.ExitCode
	}
	failed := strings.Contains(r.stderr, "Error: ") || strings.Contains(r.stderr, `{"error":{`)
	if !known || failed != (r.exit != 0) || r.exit == 2 && r.stdout != "" {
		t.Errorf("%q: %s", args, r)
	}
}

func TestAnyArguments(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	words := vocabulary(p.requestOne(t))
	random := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		args := []string{words[random.IntN(11)]}
		for range random.IntN(9) {
			args = append(args, words[random.IntN(len(words))])
		}
		wantSane(t, p, args)
	}
	if r := p.run(t, "verify"); r.exit != 0 {
		t.Errorf("%s", r)
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("outcome\n--key\nk")
	f.Add("submit\n--key\nk\n--withdrawal\n" + string(events.MintWithdrawalID(events.DefaultTenant, "alice", "order-1")))
	f.Add("--json\n--\n--key")
	f.Add("resolve\n--key\n\x00\n--sent=\xff\n--reason= \n--evidence=e\n--yes")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		for _, arg := range args {
			// What names a file is left alone, and the demo takes seconds.
			if strings.Contains(arg, ":") || strings.Contains(arg, "keep") || arg == "demo" {
				t.Skip("it may name a file, or run the demo")
			}
		}
		p := newTestProgram(t)
		p.newID = uuid.New
		p.requestOne(t)
		wantSane(t, p, args)
	})
}
