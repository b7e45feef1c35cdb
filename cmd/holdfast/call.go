package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"holdfast/eventlog"
	"holdfast/eventlog/engines"
	"holdfast/events"
	"holdfast/submissions"
)

// closePatience is how long a command that was interrupted waits for the answer of an
// attempt that is still under way.
const closePatience = 5 * time.Second

// call is one run of the program: its arguments, and the flags that every command has.
type call struct {
	*program
	args []string
	name string // the command's, once it is known

	log, tenant, actor, json, help *option

	heard *heard // what the rail said to this call; nil where none was called
}

func newCall(p *program, args []string) *call {
	return &call{
		program: p,
		args:    args,
		log: &option{name: "log", placeholder: "URL", env: "HOLDFAST_LOG", initial: "sqlite:holdfast.db",
			usage: "the log: sqlite:FILE, or esdb://HOST:PORT,... for a KurrentDB"},
		tenant: &option{name: "tenant", placeholder: "NAME", env: "HOLDFAST_TENANT", initial: string(events.DefaultTenant),
			usage: "whose withdrawals and keys are meant"},
		actor: &option{name: "actor", placeholder: "NAME", env: "HOLDFAST_ACTOR",
			usage: "who acts, for the record; by default USER@HOST of the system"},
		json: toggle("json", "print results as JSON"),
		help: &option{name: "help", short: "h", usage: "print this help"},
	}
}

func (c *call) globals() []*option { return []*option{c.log, c.tenant, c.actor, c.json, c.help} }

// commands returns all commands, in the order of the help.
func (c *call) commands() []command {
	return []command{
		c.demo(),
		c.request(), c.submit(),
		c.outcome(), c.claimedBy(), c.inFlight(),
		c.resolve(), c.release(),
		c.history(), c.verify(), c.auditExport(), c.auditVerify(), c.auditReplay(), c.doctor(), c.logCopy(), c.railBook(),
		c.projectionsList(), c.projectionsRebuild(), c.projectionsDiff(), c.projectionsVerify(), c.projectionsDropOld(),
		c.version(),
	}
}

// inJSON reports whether results and errors are to be JSON. It looks at the arguments
// themselves, so that an error before or while they are read is in the asked form too.
func (c *call) inJSON() bool {
	if c.json.given {
		return c.json.on()
	}
	words := c.args
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.TrimLeft(w, "-") == "json" && w != "json" || w == "--json=true"
	})
}

// by says who acts. Where nobody is known it is empty, which the ledger accepts only
// where nobody's word is needed (B6).
func (c *call) by() submissions.By {
	actor := c.actor.value
	if actor == "" {
		actor = c.user()
	}
	return submissions.By{Actor: actor}
}

// person is by, for a command that takes somebody's word.
func (c *call) person() (submissions.By, error) {
	by := c.by()
	if by.Actor == "" {
		return by, c.usage("the system does not say who you are, and this needs a name behind it (B6): give --actor NAME")
	}
	return by, nil
}

// access says what a command does to the log.
type access int

const (
	// reads: the log must be there, and nothing is written.
	reads access = iota
	// writes: the log must be there.
	writes
	// creates: the log is made where there is none.
	creates
)

// withLog runs a function with the log, and closes it.
func (c *call) withLog(ctx context.Context, a access, do func(eventlog.Log) error) error {
	return c.withLogAt(ctx, c.log.value, a, do)
}

// withLogAt is withLog for any log.
func (c *call) withLogAt(ctx context.Context, url string, a access, do func(eventlog.Log) error) (err error) {
	created := a == creates && isNew(url)
	log, err := c.openLog(ctx, url, a)
	if err != nil {
		return c.openFailed(err)
	}
	if created {
		c.tell("Created a new log: " + strings.TrimPrefix(place(url), sqliteScheme))
	}
	defer func() {
		if closing := log.Close(); err == nil && closing != nil {
			err = fmt.Errorf("the log could not be closed: %w", closing)
		}
	}()
	return do(log)
}

// openFailed gives an error of opening the log what the user can try.
func (c *call) openFailed(err error) error {
	if errors.Is(err, fs.ErrNotExist) && c.name != "request" && c.name != "log copy" {
		return &logError{err: err, try: c.command("request", "--help")}
	}
	if errors.Is(err, eventlog.ErrUnavailable) {
		return &logError{err: err, try: c.again()}
	}
	return &logError{err: err, try: c.command(c.name, "--help")}
}

// logError is a log that could not be opened.
type logError struct {
	err error
	try []string
}

func (e *logError) Error() string { return e.err.Error() }
func (e *logError) Unwrap() error { return e.err }

// withLedger runs a function with the tenant's ledger. It waits a while for the answer
// of an attempt that goes on without its caller, so that it is recorded.
func (c *call) withLedger(ctx context.Context, a access, do func(*submissions.Ledger) error) error {
	if err := events.Tenant(c.tenant.value).Validate(); err != nil {
		return c.usage("%w", err)
	}
	return c.withLog(ctx, a, func(log eventlog.Log) error {
		ledger, err := submissions.New(log, &submissions.Options{Clock: c.now, NewID: c.newID, Logger: c.logger()})
		if err != nil {
			return err
		}
		err = do(ledger.For(events.Tenant(c.tenant.value)))
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		if closing := ledger.Close(patient); closing != nil {
			c.noteUnrecorded()
		}
		return err
	})
}

// noteUnrecorded says what is not on record when the command ends.
func (c *call) noteUnrecorded() {
	if said := c.heard.said(); said != "" {
		c.note("the rail answered (%s), and the log did not take its answer within %s; the key stays in flight until somebody resolves it", said, closePatience)
		return
	}
	c.note("the rail has not answered within %s after the end; the key stays in flight until somebody looks", closePatience)
}

// logger is where the ledger tells of an answer whose caller has gone.
func (c *call) logger() *slog.Logger {
	if c.inJSON() {
		return slog.New(slog.NewJSONHandler(c.stderr, nil))
	}
	return slog.New(slog.NewTextHandler(c.stderr, nil))
}

// command returns a command line to try, with the flags that say which log and tenant
// are meant where this call was given them as flags. No password is shown.
func (c *call) command(name string, flags ...string) []string {
	words := append([]string{programName}, strings.Fields(name)...)
	for _, o := range []*option{c.log, c.tenant} {
		if o.given {
			words = append(words, "--"+o.name, engines.Redacted(o.value))
		}
	}
	return append(words, flags...)
}

// again returns this very command line, with more flags, and without a password.
func (c *call) again(flags ...string) []string {
	words := []string{programName}
	for _, word := range c.args {
		words = append(words, engines.Redacted(word))
	}
	return append(words, flags...)
}
