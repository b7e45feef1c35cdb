package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast/aggregate"
	"holdfast/eventlog"
)

// demoDocument is the result of demo.
type demoDocument struct {
	OK    bool           `json:"ok"`
	Steps []stepDocument `json:"steps"`
}

type stepDocument struct {
	Number   int             `json:"number"`
	Title    string          `json:"title"`
	OK       bool            `json:"ok"`
	Commands []string        `json:"commands"`
	Checks   []checkDocument `json:"checks"`
}

type checkDocument struct {
	Claim string `json:"claim"`
	OK    bool   `json:"ok"`
	// Saw is what there was instead, when the claim did not hold.
	Saw string `json:"saw,omitempty"`
}

func (c *call) demo() command {
	keep := text("keep", "DIR", "make the log and the rail's book in this folder, and leave them there")
	return command{
		name:  "demo",
		usage: "show the whole story, each step really executed and checked",
		description: []string{
			"Requests withdrawals and submits them while everything goes wrong that can: retries, second clients, timeouts before " +
				"and after the money left, a refusal, a process that is killed, eight processes that race. Each command that is shown " +
				"is run, on a real log and a simulated rail with a book of its own, and each claim is checked against them. The exit " +
				"status is 0 only when all of it was as told.",
			"It works in a temporary folder and takes it away, unless --keep is given. With --log on the command line it uses that " +
				"log, and adds to it under names that are new each time.",
		},
		examples: []string{"demo", "demo --keep ./demo --json"},
		options:  []*option{keep},
		run:      func(ctx context.Context) error { return c.runDemo(ctx, keep.value) },
	}
}

func (c *call) runDemo(ctx context.Context, keep string) error {
	if c.log.given { // it is made before the story, and a log that cannot be is no start for one
		if err := c.withLog(ctx, creates, func(eventlog.Log) error { return nil }); err != nil {
			return err
		}
	}
	folder, tidy, err := demoFolder(keep)
	if err != nil {
		return c.usage("the demo's folder cannot be made: %w", err)
	}
	defer tidy()
	// Who stops reading ends the demo, by an error of the next line, and not by a signal
	// that would leave the folder behind.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	s := c.newStage(ctx, folder)
	s.open()
	for _, step := range story() {
		if s.printing != nil {
			return s.printing
		}
		if !s.play(step) {
			break
		}
	}
	return s.end(keep)
}

// demoFolder makes the folder that the demo works in, and says how to take it away.
func demoFolder(keep string) (folder string, tidy func(), err error) {
	if keep == "" {
		folder, err = os.MkdirTemp("", "holdfast-demo-")
		return folder, func() { os.RemoveAll(folder) }, err
	}
	if err := os.MkdirAll(keep, 0o755); err != nil {
		return "", nil, err
	}
	for _, name := range []string{demoLog, demoBook} {
		if _, err := os.Lstat(filepath.Join(keep, name)); err == nil {
			return "", nil, fmt.Errorf("%s has a %s already", keep, name)
		}
	}
	folder, err = filepath.Abs(keep)
	return folder, func() {}, err
}

const (
	demoLog  = "holdfast.db"
	demoBook = "book.jsonl"
)

func (c *call) newStage(ctx context.Context, folder string) *stage {
	s := &stage{
		call: c, ctx: ctx, paint: c.paint(c.stdout), quiet: c.inJSON(),
		book:     filepath.Join(folder, demoBook),
		document: demoDocument{OK: true, Steps: []stepDocument{}},
	}
	url := "sqlite:" + filepath.Join(folder, demoLog)
	if c.log.given {
		url = c.log.value
		s.suffix = "-" + strings.ToLower(rand.Text()[:8])
	}
	s.surroundings = [][2]string{
		{"HOLDFAST_LOG", url}, {"HOLDFAST_RAIL", simulatedScheme + s.book},
		{"HOLDFAST_TENANT", c.tenant.value}, {"HOLDFAST_ACTOR", "demo"},
	}
	return s
}

// end says how it went.
func (s *stage) end(keep string) error {
	if s.quiet {
		if err := s.print(string(encode(s.document))); err != nil {
			return err
		}
	}
	if !s.document.OK {
		last := s.document.Steps[len(s.document.Steps)-1]
		failed := &aggregate.Refusal{Code: aggregate.CodeDamaged,
			Message: fmt.Sprintf("step %d of the demo was not as told: %s", last.Number, last.Title)}
		return &tryError{failed, s.command("demo", "--keep", "demo-folder")}
	}
	s.say("")
	s.say("%s", s.paint.bold("Every step was as told."))
	if keep != "" {
		s.say("The log and the rail's book are in %s.", filepath.Dir(s.book))
	}
	return s.printing
}
