package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/events"
)

// TestMain makes the test binary answer to the program's name, so that scripts and the
// demo can start it as a process of its own.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // or each child would wait a second at its exit
	testscript.Main(leakFree{m}, map[string]func(){programName: main})
}

// leakFree is the tests, which fail when they leave a goroutine behind.
type leakFree struct{ *testing.M }

func (l leakFree) Run() int {
	code := l.M.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOLDFAST_LOG", "sqlite:log.db")
			env.Setenv("HOLDFAST_RAIL", "simulated:book.jsonl")
			env.Setenv("HOLDFAST_ACTOR", "ann")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			for i := 1; i <= 4; i++ {
				id := events.MintWithdrawalID(events.DefaultTenant, "alice", fmt.Sprintf("order-%d", i))
				env.Setenv(fmt.Sprintf("W%d", i), string(id))
				env.Setenv(fmt.Sprintf("TOKEN%d", i), string(id[len(id)-tokenLength:]))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "requested": requested, "tamper": tamper, "vacuum": vacuum, "stderrlines": stderrLines,
		},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Getuid() == 0, nil
			}
			return false, fmt.Errorf("condition %s is not known", name)
		},
	})
}

// exits runs a command and checks its exit status, and that nothing panicked.
//
//	exits 4 holdfast submit --key k
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG ...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	stderr := ts.ReadFile("stderr")
	if got != want || strings.Contains(stderr, "goroutine ") {
		ts.Fatalf("%v: exit status %d, want %d\n%s", args[1:], got, want, stderr)
	}
	if stdout := ts.ReadFile("stdout"); got == 2 && stdout != "" {
		ts.Fatalf("%v: an invalid request printed a result:\n%s", args[1:], stdout)
	}
	if got != 0 && !regexp.MustCompile(`(?m)^Error: .*\n(.*\n)*Try: holdfast |^\{"error":\{.*"try":"holdfast `).MatchString(stderr) {
		ts.Fatalf("%v: the error does not say what to try:\n%s", args[1:], stderr)
	}
}

// requested requests withdrawals order-1 to order-N.
func requested(ts *testscript.TestScript, neg bool, args []string) {
	for _, n := range args {
		ts.Check(ts.Exec(programName, "request", "--account", "alice", "--reference", "order-"+n, "--amount", n+"0.25",
			"--currency", "EUR", "--destination", "DE89"))
	}
}

// stderrLines checks how many lines there are on standard error.
func stderrLines(ts *testscript.TestScript, neg bool, args []string) {
	if got := strings.Count(ts.ReadFile("stderr"), "\n"); fmt.Sprint(got) != args[0] {
		ts.Fatalf("%d lines on standard error, want %s:\n%s", got, args[0], ts.ReadFile("stderr"))
	}
}

// tamper does to a log what no command does.
func tamper(ts *testscript.TestScript, neg bool, args []string) {
	scripts := map[string]string{
		"newer":   "PRAGMA user_version = 99;",
		"foreign": "PRAGMA application_id = 7;",
		"content": "DROP TRIGGER events_no_update; UPDATE events SET data = CAST(replace(CAST(data AS TEXT), '10.25', '99.25') AS BLOB) WHERE revision = 0;",
		"gap":     "DROP TRIGGER events_no_delete; DELETE FROM events WHERE type = 'SendAttempted';",
	}
	script, ok := scripts[args[0]]
	if !ok {
		ts.Fatalf("tampering %q is not known", args[0])
	}
	ts.Check(runSQL(ts.MkAbs(args[1]), script))
}

// vacuum copies a log as the README says.
func vacuum(ts *testscript.TestScript, neg bool, args []string) {
	conn, err := sqlite.OpenConn(ts.MkAbs(args[0]), sqlite.OpenReadWrite)
	ts.Check(err)
	ts.Check(errors.Join(sqlitex.ExecuteTransient(conn, "VACUUM INTO '"+ts.MkAbs(args[1])+"'", nil), conn.Close()))
}

func runSQL(path, script string) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	return errors.Join(sqlitex.ExecuteScript(conn, script, nil), conn.Close())
}

// TestInterrupted interrupts a real process while the rail is at it, after the money
// left: it says truthfully that it does not know, and soon.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		p := newTestProgram(t)
		id := p.requestOne(t)
		cmd, err := self(t.Context(), "submit", "--log", p.log, "--rail", p.rail, "--key", "k", "--withdrawal", id,
			"--fault", "timeout-after", "--timeout", "10m", "--json")
		if err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stage := &stage{call: newCall(p.program, nil), ctx: t.Context(), surroundings: [][2]string{{"HOLDFAST_LOG", p.log}}}
		if !stage.eventually(func() bool {
			_, err := os.ReadFile(filepath.Join(p.dir, "book.jsonl"))
			return err == nil && stage.state("k") == "sending" && p.left(t, id) == 1
		}) {
			t.Fatal("the attempt did not begin")
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != 5 || stdout.Len() != 0 || !strings.Contains(stderr.String(), `"code":"outcome-unknown"`) {
			t.Errorf("%v: exit status %d, stdout %q, stderr %q; want 5 and outcome-unknown", sig, got, &stdout, &stderr)
		}
		if got := stage.state("k"); got != "unknown" {
			t.Errorf("%v: the state is %s afterwards, want unknown: what the rail did is recorded", sig, got)
		}
	}
}

// TestDemo runs the demo as a process.
func TestDemo(t *testing.T) {
	t.Parallel()
	cmd, err := self(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"✓ the answer is the first one, byte for byte", "Fields: withdrawal, amount", "Holder: req-1\n",
		"✓ a release is refused while it may be running", "✓ the process is dead, and said nothing",
		"✓ exactly one of them won", "✓ the other seven were told the winner's name",
		"✓ all 7 withdrawals left, each of them once, and nothing else did", "Every step was as told.",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the demo does not say %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("the demo left %v behind (%v)", left, err)
	}
}

// TestDemoOnAGivenLog runs the demo twice on one log: its names are new each time.
func TestDemoOnAGivenLog(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	for i := range 2 {
		r := p.run(t, "demo", "--log", p.log, "--json")
		if r.exit != 0 || !strings.HasPrefix(r.stdout, `{"ok":true,`) || strings.Contains(r.stderr, "Created a new log: "+p.dir) != (i == 0) {
			t.Fatalf("%s", r)
		}
	}
}

// TestDemoInterrupted ends the demo's context before it begins.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := p.runWith(ctx, "demo", "--json"); r.exit == 0 || !strings.Contains(r.stdout, `"ok":false`) {
		t.Errorf("%s", r)
	}
}

// TestDemoWithoutAReader stops reading the demo after a line, as head does: it takes its
// folder away all the same.
func TestDemoWithoutAReader(t *testing.T) {
	t.Parallel()
	cmd, err := self(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if err := stdout.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 8 {
		t.Errorf("the demo ended with %v, want exit status 8", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("the demo left %v behind (%v)", left, err)
	}
}
