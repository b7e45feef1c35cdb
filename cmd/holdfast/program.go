package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"holdfast/eventlog"
	"holdfast/rail"
)

const programName = "holdfast"

// program is the command with everything that it would otherwise take from its
// surroundings, so that a test can start it within its own process.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(name string) (value string, set bool)
	user           func() string // "" where it is not known
	terminal       func(stream any) bool
	now            func() time.Time
	newID          func() uuid.UUID
	openLog        func(ctx context.Context, url string, a access) (eventlog.Log, error)
	openRail       func(p *program, spec, fault string) (rail.Rail, error)
	// self returns the program as a child process, for the demo.
	self func(ctx context.Context, args ...string) (*exec.Cmd, error)
}

// command is one command of the program.
type command struct {
	name  string
	usage string
	// description is paragraphs, without line breaks of their own.
	description []string
	// examples are command lines without the program's name.
	examples []string
	options  []*option
	// argument is the one of the options whose value may also come bare, right after the
	// command's name; nil for none.
	argument *option
	run      func(ctx context.Context) error
}

// run runs one command line and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	c := newCall(p, args)
	err := c.dispatch(ctx)
	if err == nil {
		return 0
	}
	return c.fail(err)
}

// dispatch finds the command, reads its flags and runs it.
func (c *call) dispatch(ctx context.Context) error {
	commands := c.commands()
	version := &option{name: "version", short: "v", usage: "print which build this is"}
	options := append(c.globals(), version)
	app := &cli.App{
		Name:            programName,
		Flags:           flagsOf(options),
		HideHelp:        true, // see help: ours has no wrapping and no topics
		HideVersion:     true,
		HideHelpCommand: true,
		Writer:          c.stdout,
		ErrWriter:       c.stderr,
		ExitErrHandler:  func(*cli.Context, error) {}, // the exit status is run's business
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return c.badFlags(err, options)
		},
		Action: func(ctx *cli.Context) error {
			switch {
			case c.help.on():
				return c.printUsage(commands)
			case version.on() && ctx.Args().Len() == 0:
				return c.printVersion()
			case ctx.Args().Len() == 0:
				return c.usage("a command is needed")
			case ctx.Args().First() == "help":
				return c.helpOn(commands, ctx.Args().Tail())
			}
			return c.unknownCommand(commands, ctx.Args().First())
		},
	}
	for _, command := range commands {
		app.Commands = append(app.Commands, c.library(command))
	}
	return app.RunContext(ctx, append([]string{programName}, joined(commands, c.args)...))
}

// joined returns the arguments with the name of the command as one of them, where it is of
// two words, and with the flag of a value that came bare behind it.
func joined(commands []command, args []string) []string {
	for words := 2; words >= 1; words-- {
		if len(args) < words {
			continue
		}
		name := strings.Join(args[:words], " ")
		i := slices.IndexFunc(commands, func(command command) bool { return command.name == name })
		if i < 0 {
			continue
		}
		rest := args[words:]
		if argument := commands[i].argument; argument != nil && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			rest = append([]string{"--" + argument.name}, rest...)
		}
		return append([]string{name}, rest...)
	}
	return args
}

// library returns the command as the library wants it.
func (c *call) library(command command) *cli.Command {
	options := append(slices.Clone(command.options), c.globals()...)
	isFlag := func(word string) bool {
		return slices.ContainsFunc(options, func(o *option) bool { return word == "--"+o.name })
	}
	for _, o := range options {
		o.isFlag = isFlag
	}
	return &cli.Command{
		Name:            command.name,
		HideHelp:        true,
		HideHelpCommand: true,
		Flags:           flagsOf(options),
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			c.name = command.name
			return c.badFlags(err, options)
		},
		Action: func(ctx *cli.Context) error {
			c.name = command.name
			if c.help.on() {
				return c.printHelp(command, options)
			}
			// The library ignores flags after an argument, so a command that took
			// arguments would run without the flags that follow them.
			if ctx.Args().Len() > 0 {
				return c.usage("%q is left over; every value needs its flag before it", ctx.Args().First())
			}
			if err := settleAll(options, c.env); err != nil {
				return c.usage("%w", err)
			}
			return command.run(ctx.Context)
		},
	}
}

func flagsOf(options []*option) []cli.Flag {
	flags := make([]cli.Flag, len(options))
	for i, o := range options {
		flags[i] = o
	}
	return flags
}

// badFlags says in our words what the flag package found wrong.
func (c *call) badFlags(err error, options []*option) error {
	for _, o := range options {
		if o.complaint != nil {
			return c.usage("%w", o.complaint)
		}
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		var names []string
		for _, o := range options {
			names = append(names, o.name)
		}
		if near, ok := nearest(name, names); ok {
			return c.usage("unknown flag %q; did you mean --%s?", "--"+name, near)
		}
		return c.usage("unknown flag %q", "--"+name)
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
		return c.usage("--%s needs a value", name)
	}
	return c.usage("%w", err)
}

// otherWords are what some call a command that has another name here.
var otherWords = map[string][]string{
	"status": {"outcome", "claimed-by"}, "show": {"outcome", "claimed-by"}, "get": {"outcome", "claimed-by"},
	"list": {"in-flight", "projections list"}, "rebuild": {"projections rebuild"}, "projections": {"projections list", "projections rebuild"}, "projection": {"projections list"}, "pending": {"in-flight"}, "pay": {"submit"}, "send": {"submit"}, "create": {"request"},
	"log": {"log copy", "history"}, "copy": {"log copy"}, "move": {"log copy"}, "migrate": {"log copy"}, "events": {"history"}, "check": {"verify", "doctor"}, "examine": {"doctor"}, "health": {"doctor"}, "audit": {"audit export", "audit verify", "audit replay"}, "export": {"audit export"}, "book": {"rail-book"},
}

func (c *call) unknownCommand(commands []command, name string) error {
	names := []string{"help"}
	for _, command := range commands {
		names = append(names, command.name)
	}
	meant := otherWords[name]
	if near, ok := nearest(name, names); ok && meant == nil {
		meant = []string{near}
	}
	if meant == nil {
		return c.usage("unknown command %q", name)
	}
	return c.usage("unknown command %q; did you mean %s?", name, strings.Join(meant, " or "))
}

// helpOn prints the help of the command that is named, and of the program where none is.
func (c *call) helpOn(commands []command, names []string) error {
	if len(names) == 0 {
		return c.printUsage(commands)
	}
	if names = joined(commands, names); len(names) > 1 {
		return c.usage("%q is left over; help takes the name of one command", names[1])
	}
	for _, command := range commands {
		if command.name == names[0] {
			return c.printHelp(command, append(slices.Clone(command.options), c.globals()...))
		}
	}
	return c.unknownCommand(commands, names[0])
}

// usage is the error of a command line that cannot be run.
func (c *call) usage(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), try: c.ownHelp()}
}

// ownHelp is the command line that prints the help of the command, or of the program before
// it is known.
func (c *call) ownHelp() []string {
	return append(append([]string{programName}, strings.Fields(c.name)...), "--help")
}

// usageError is an invalid-request that never got to the ledger.
type usageError struct {
	err error
	try []string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// asUsage returns the usage error in err's chain, or nil.
func asUsage(err error) *usageError {
	var u *usageError
	errors.As(err, &u)
	return u
}
