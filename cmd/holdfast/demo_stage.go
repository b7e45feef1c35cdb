package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"holdfast/events"
	"holdfast/internal/shell"
	"holdfast/rail/simulated"
)

// stage is where the demo is played: the surroundings of its commands, what they did and
// what was checked.
type stage struct {
	*call
	ctx   context.Context
	paint paint
	quiet bool // the document is printed at the end, and nothing before

	book         string // the file of the rail's book
	surroundings [][2]string
	suffix       string // makes names new on a log that is not

	withdrawals []string // all that were requested, in order
	document    demoDocument
	step        *stepDocument
	printing    error
}

// step is one step of the story.
type step struct {
	title string
	tell  string
	play  func(s *stage)
}

// ran is what a command did.
type ran struct {
	exit           int
	killed         bool
	stdout, stderr string
}

// say prints a line of the story.
func (s *stage) say(format string, args ...any) {
	if !s.quiet && s.printing == nil {
		s.printing = s.print(fmt.Sprintf(format+"\n", args...))
	}
}

// open sets the scene.
func (s *stage) open() {
	s.say("%s", wrap("A withdrawal is paid at most once, whoever asks, however often, whatever crashes, and everyone who asks is "+
		"told the truth about it. What follows is run for real, on this log and this rail:", textWidth))
	s.say("")
	for _, v := range s.surroundings {
		s.say("    export %s=%s", v[0], shell.Quote(v[1]))
	}
}

// play plays one step and reports whether all of it was as told.
func (s *stage) play(step step) bool {
	s.document.Steps = append(s.document.Steps, stepDocument{
		Number: len(s.document.Steps) + 1, Title: step.title, OK: true, Commands: []string{}, Checks: []checkDocument{},
	})
	s.step = &s.document.Steps[len(s.document.Steps)-1]
	s.say("\n%s", s.paint.bold(fmt.Sprintf("%d. %s", s.step.Number, step.title)))
	s.say("%s\n", indent(wrap(step.tell, textWidth-3), "   "))
	step.play(s)
	if s.ctx.Err() != nil {
		s.check("the demo was not interrupted", false, s.ctx.Err().Error())
	}
	s.document.OK = s.document.OK && s.step.OK
	return s.step.OK
}

// check records whether a claim holds, and what there was if it does not.
func (s *stage) check(claim string, ok bool, saw string) {
	d := checkDocument{Claim: claim, OK: ok}
	if ok {
		s.say("   %s %s", s.paint.good("✓"), claim)
	} else {
		d.Saw, s.step.OK = strings.TrimSpace(saw), false
		s.say("   %s FAILED: %s", s.paint.bad("✗"), claim)
		s.say("%s", indent(d.Saw, "       "))
	}
	s.step.Checks = append(s.step.Checks, d)
}

// run runs a command, shown as a person would type it.
func (s *stage) run(args ...string) ran {
	s.show(args, "")
	return s.told(s.runQuietly(s.ctx, args...))
}

// show prints a command line.
func (s *stage) show(args []string, remark string) {
	line := shell.Join(append([]string{programName}, args...)...)
	s.step.Commands = append(s.step.Commands, line)
	s.say("   %s %s%s", s.paint.dim("$"), line, s.paint.dim(remark))
}

// runQuietly runs a command within this process, in the demo's surroundings.
func (s *stage) runQuietly(ctx context.Context, args ...string) ran {
	p := *s.program
	var stdout, stderr bytes.Buffer
	p.stdin, p.stdout, p.stderr = strings.NewReader(""), &stdout, &stderr
	p.terminal = func(any) bool { return false }
	p.env = func(name string) (string, bool) {
		for _, v := range s.surroundings {
			if v[0] == name {
				return v[1], true
			}
		}
		return "", false
	}
	exit := p.run(ctx, args)
	return ran{exit: exit, stdout: stdout.String(), stderr: stderr.String()}
}

// told prints the lines of what a command said that matter to the story.
func (s *stage) told(r ran) ran {
	facts, refusal := r.split()
	for _, part := range []struct {
		text  string
		names []string
	}{
		{facts, []string{"Rail says", "Warning"}},
		{refusal, []string{"Error", "Holder", "Fields", "State", "Until"}},
		{r.stdout, []string{"Result", "Rail reference", "Released"}},
	} {
		for line := range strings.Lines(part.text) {
			if name, value, ok := strings.Cut(line, ":"); ok && slices.Contains(part.names, name) {
				s.say("     %s", s.paint.dim(name+": "+strings.TrimSpace(value)))
			}
		}
	}
	return r
}

// split parts what was said on standard error into what came before the error, and the
// error with its facts.
func (r ran) split() (before, refusal string) {
	at := strings.Index("\n"+r.stderr, "\nError:")
	if at < 0 {
		return r.stderr, ""
	}
	return r.stderr[:at], r.stderr[at:]
}

// start starts a command as a process of its own; what it returns waits for its end.
func (s *stage) start(args ...string) func() ran {
	failed := func(err error) func() ran { return func() ran { return ran{exit: -1, stderr: err.Error()} } }
	cmd, err := s.self(s.ctx, args...)
	if err != nil {
		return failed(err)
	}
	for _, v := range s.surroundings {
		cmd.Env = append(cmd.Environ(), v[0]+"="+v[1])
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return failed(err)
	}
	return func() ran {
		err := cmd.Wait()
		r := ran{stdout: stdout.String(), stderr: stderr.String(), exit: cmd.ProcessState.ExitCode(), killed: wasKilled(cmd)}
		if _, exited := err.(*exec.ExitError); err != nil && !exited {
			r.stderr += err.Error()
		}
		return r
	}
}

// request requests a withdrawal and returns its id.
func (s *stage) request(reference, amount string) string {
	r := s.run("request", "--account", "alice", "--reference", reference+s.suffix, "--amount", amount, "--currency", "EUR",
		"--destination", "DE89370400440532013000")
	id := r.fact("Withdrawal")
	s.check("the withdrawal has an id", r.exit == 0 && events.WithdrawalID(id).Validate() == nil, r.String())
	s.withdrawals = append(s.withdrawals, id)
	return id
}

// key returns a request key that is new on this log.
func (s *stage) key(name string) string { return name + s.suffix }

// left checks how often the rail's own book says that a withdrawal left.
func (s *stage) left(id string, want int) {
	counts, err := simulated.Count(s.book)
	times := map[int]string{0: "nothing left", 1: "the money left once"}[want]
	s.check("the rail's book: "+times, err == nil && counts[events.WithdrawalID(id)] == want,
		fmt.Sprintf("it left %d times (error: %v)", counts[events.WithdrawalID(id)], err))
}

// looked is an operator looking at the rail's book: it returns the references of what
// left for a withdrawal.
func (s *stage) looked(id string) []string {
	r := s.run("rail-book", "--withdrawal", id, "--json")
	var d bookDocument
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil {
		s.check("the rail's book can be read", false, err.Error()+"\n"+r.String())
	}
	var references []string
	for _, e := range d.Entries {
		if e.Reference != "" {
			references = append(references, e.Reference)
		}
		s.say("     %s", s.paint.dim(strings.TrimSpace(fmt.Sprintf("%s %s %s%s", e.Time, e.Result, e.Reference, e.Reason))))
	}
	if len(d.Entries) == 0 {
		s.say("     %s", s.paint.dim("(nothing)"))
	}
	return references
}

// eventually waits until a look at the log sees what another process is about to write.
func (s *stage) eventually(look func() bool) bool {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for !look() {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// fact returns the value of a named fact in what a command printed.
func (r ran) fact(name string) string {
	for _, line := range strings.Split(r.stdout+r.stderr, "\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// refused reports whether the command printed nothing, and was refused with an exit status
// and a code.
func (r ran) refused(exit int, code string) bool {
	_, refusal := r.split()
	first, _, _ := strings.Cut(refusal, "\n")
	return r.exit == exit && r.stdout == "" && strings.HasSuffix(first, "("+code+")")
}

func (r ran) String() string {
	return fmt.Sprintf("exit status %d\n%s%s", r.exit, r.stdout, r.stderr)
}

func indent(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }
