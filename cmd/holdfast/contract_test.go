package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/shell"
)

var update = flag.Bool("update", false, "write the golden files anew")

// contract is a story that has every command print every part of its result, and an
// error of each kind.
var contract = []string{
	"request --account alice --reference order-1 --amount 10.250 --currency EUR --destination DE89",
	"request --account alice --reference order-2 --amount 20 --currency EUR --destination DE89",
	"request --account alice --reference order-3 --amount 30 --currency EUR --destination DE89",
	"request --account alice --reference order-3 --amount 31 --currency USD --destination DE89",
	"submit --key req-1 --withdrawal W1",
	"submit --key req-1 --withdrawal W1",
	"submit --key req-1 --withdrawal W2",
	"submit --key req-9 --withdrawal W1",
	"submit --key req-9 --withdrawal W1 --amount 9",
	"submit --key req-2 --withdrawal W2 --fault error-after",
	"submit --key req-2 --withdrawal W2",
	"submit --key req-3 --withdrawal W3 --fault refuse",
	"outcome --key req-1",
	"outcome --key req-2",
	"outcome --key nobody",
	"claimed-by --withdrawal W1",
	"in-flight",
	"resolve --key req-2 --sent sim-2 --reason timeout --evidence statement",
	"resolve --key req-2 --sent sim-2 --reason timeout --evidence statement --yes",
	"resolve --key req-2 --failed --reason timeout --evidence statement --yes",
	"release --key req-3 --reason 'rail closed' --evidence statement --yes",
	"claimed-by --withdrawal W3",
	"history --withdrawal W3",
	"rail-book",
	"verify",
	"outcome --key",
	"in-flight --log sqlite:none.db",
}

// TestContract pins what a program may rely on: the results and errors in JSON.
func TestContract(t *testing.T) { golden(t, "testdata/contract.golden", "--json") }

// TestPages shows what a person sees, so that a change to it is seen as well.
func TestPages(t *testing.T) { golden(t, "testdata/pages.golden") }

// golden plays the contract's story a second for each command, and compares.
func golden(t *testing.T, file string, flags ...string) {
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	p := newTestProgram(t)
	t.Chdir(p.dir)
	dir, err := os.Getwd() // as the program finds it
	if err != nil {
		t.Fatal(err)
	}
	p.log, p.rail = "sqlite:log.db", "simulated:book.jsonl"
	p.deterministic()
	var ids []string
	var got bytes.Buffer
	for _, line := range contract {
		for i, id := range ids {
			line = strings.ReplaceAll(line, "W"+string(rune('1'+i)), id)
		}
		args := append(words(line), flags...)
		p.clock = p.clock.Add(time.Second) // all of a command happens at once
		r := p.run(t, args...)
		r.stderr = strings.ReplaceAll(r.stderr, dir, "/DIR")
		got.WriteString("$ " + shell.Join(append([]string{programName}, args...)...) + "\n" + r.stdout)
		if r.stderr != "" {
			got.WriteString("--- standard error\n" + r.stderr)
		}
		if r.exit != 0 {
			got.WriteString("--- exit status " + string(rune('0'+r.exit)) + "\n")
		}
		got.WriteString("\n")
		if args[0] == "request" && r.exit == 0 {
			ids = append(ids, requestedID(t, r))
		}
		if len(flags) > 0 {
			wantJSON(t, line, r)
		}
	}
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got, -update writes it anew)\n%s", diff)
	}
}

// words splits a line of the story; what has blanks in it is in single quotes.
func words(line string) []string {
	var args []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

func requestedID(t *testing.T, r ran) string {
	if id := r.fact("Withdrawal"); id != "" {
		return id
	}
	var d requestDocument
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil {
		t.Fatalf("%v: %s", err, r)
	}
	return d.Withdrawal
}

// wantJSON checks that a result is one object on one line, and that what is on standard
// error is lines of objects of which exactly the last is an error, where there is one.
func wantJSON(t *testing.T, line string, r ran) {
	t.Helper()
	if r.stdout != "" && (strings.Count(r.stdout, "\n") != 1 || !json.Valid([]byte(r.stdout))) {
		t.Errorf("%s: the result is not one line of JSON:\n%s", line, r.stdout)
	}
	lines := strings.SplitAfter(r.stderr, "\n")
	for i, text := range lines[:len(lines)-1] {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Errorf("%s: standard error has a line that is not an object: %v\n%s", line, err, text)
		}
		if _, failed := object["error"]; failed != (r.exit != 0 && i == len(lines)-2) {
			t.Errorf("%s: exit status %d, and standard error is\n%s", line, r.exit, r.stderr)
		}
	}
}
