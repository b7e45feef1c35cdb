package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"holdfast/aggregate"
	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/submissions"
)

// Place is a log, and its name as it may be shown to a person and recorded: without a
// password, and with an absolute path.
type Place struct {
	Log  eventlog.Log
	Name string
}

// Stage is what a copy is at.
type Stage string

// The stages of a copy, in their order. With Options.CutOver, the later ones come again.
const (
	CheckingSource Stage = "checking the source"
	Copying        Stage = "copying"
	Comparing      Stage = "comparing"
	CheckingTarget Stage = "checking the target"
	Asking         Stage = "asking both"
)

// Options are the choices one has for a copy. The zero value of each field, and a nil
// *Options, mean the default.
type Options struct {
	// Actor is who copies, for the record; "unnamed" by default.
	Actor string
	// CutOver moves the ledger: once everything is copied the source is no ledger any
	// more, and once the copy has been proved the target is the ledger. Without it the
	// target is a copy that nothing is paid from, and that the next Copy goes on with.
	CutOver bool
	// Progress is told how many events each stage has done. It is called often.
	Progress func(s Stage, events uint64)
	// Clock tells the time; time.Now by default.
	Clock func() time.Time
	// NewID makes event ids and the copy's id: random, never twice the same. uuid.New by
	// default.
	NewID func() uuid.UUID
	// Pause waits, and returns the context's cause when that ends before. By default it
	// waits for real. Where ledgers may be at work on either log, it must.
	Pause func(ctx context.Context, d time.Duration) error
}

// Report is what a copy came to.
type Report struct {
	// Copy is the copy's id, as the custody streams have it.
	Copy string
	// Events and Streams count what both logs have, without their custody streams, and
	// Appended what this run wrote to the target, or found there when it was about to.
	Events, Streams, Appended uint64
	// Withdrawals and Keys count what both ledgers gave the same answers about.
	Withdrawals, Keys uint64
	// MovedOn says that the source has events that came while it was copied, and that the
	// target does not have.
	MovedOn bool
	// CutOver says that the target is the ledger now, and the source is not. Already says
	// that this was so before, and that nothing was done.
	CutOver, Already bool
}

// settle is how long a copy waits after it has written to a custody stream, so that every
// ledger that was open has seen it. It has to be longer than submissions.CustodyTrust.
const settle = 2 * submissions.CustodyTrust

// rounds is how often a source that moves on after it was sealed is copied once more.
const rounds = 3

// Copy copies every event of one log to another that is empty, or that an earlier Copy from
// the same log began: with its stream, revision, id, type and bytes. It goes on where the
// earlier one ended. At the end it proves the copy: both logs hold the same events, the
// target is sound, and ledgers on both give the same answers.
//
// While it is copied into, and until a Copy with Options.CutOver has ended, the target is no
// ledger, and every command on it is refused as unavailable.
//
// It returns [*Refused] for logs that cannot be copied so, [*Unsound] for one that is
// damaged, [*Differs] when the target holds something else than the source, [*Busy] when
// the ledger cannot be moved now, and the errors of the logs.
func Copy(ctx context.Context, from, to Place, o *Options) (Report, error) {
	c := newCopying(from, to, o)
	if err := c.admit(ctx); err != nil || c.report.Already {
		return c.report, err
	}
	if err := c.checkSource(ctx); err != nil {
		return c.report, err
	}
	if err := c.begin(ctx); err != nil {
		return c.report, err
	}
	err := c.round(ctx)
	if err == nil && c.CutOver {
		err = c.cutOver(ctx)
	}
	return c.report, err
}

// copying is one run of Copy.
type copying struct {
	Options
	from, to Place
	target   *target
	codec    *events.Codec
	report   Report
	// source and into are the custody of both logs.
	source, into custody
	// reached is the position in the source up to which the target has everything, and
	// done how many events that is.
	reached eventlog.Position
	done    uint64
	// proved and ends are how far the source and the target were proved before the source
	// was sealed: what is before them is not asked about again while neither is a ledger.
	proved, ends eventlog.Position
	asked        struct{ withdrawals, keys uint64 }
	sending      *submissions.Status
}

func newCopying(from, to Place, o *Options) *copying {
	c := &copying{from: from, to: to, codec: events.NewCodec()}
	if o != nil {
		c.Options = *o
	}
	if c.Actor == "" {
		c.Actor = "unnamed"
	}
	if c.Progress == nil {
		c.Progress = func(Stage, uint64) {}
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.NewID == nil {
		c.NewID = uuid.New
	}
	if c.Pause == nil {
		c.Pause = wait
	}
	c.target = &target{log: to.Log, pause: c.Pause}
	c.source, c.into = custody{log: from.Log}, custody{log: to.Log}
	return c
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *copying) stage(s Stage) func(uint64) {
	c.Progress(s, 0)
	return func(events uint64) { c.Progress(s, events) }
}

// checkSource verifies the source, before anything is written.
func (c *copying) checkSource(ctx context.Context) error {
	return c.audit(ctx, c.from.Log, eventlog.Start, CheckingSource)
}

func (c *copying) audit(ctx context.Context, log eventlog.Log, after eventlog.Position, s Stage) error {
	report, err := audit.VerifySince(ctx, log, after, c.stage(s))
	var damaged *eventlog.Damaged
	if errors.As(err, &damaged) {
		report.Findings, err = append(report.Findings, audit.Finding{Code: string(damaged.Kind), Stream: damaged.Stream, Reason: damaged.Reason}), nil
	}
	if err == nil && !report.Clean() {
		err = &Unsound{Target: s == CheckingTarget, Findings: report.Findings}
	}
	return err
}

// begin makes the target a log that is copied into, where it is not, and waits until no
// ledger takes it for one.
func (c *copying) begin(ctx context.Context) error {
	fresh := false
	if keeper, _ := c.into.state.Keeper(); keeper != aggregate.Coming {
		first, err := c.firstEvent(ctx, c.from.Log)
		if err != nil {
			return err
		}
		fresh = c.into.state.Next() == 0
		begun := events.CopyBegun{Copy: c.NewID().String(), From: c.from.Name, First: first.ID.String()}
		if err := c.record(ctx, &c.into, begun); err != nil {
			return err
		}
	}
	c.report.Copy = c.into.state.Copy().Copy
	reached := c.into.state.Reached()
	c.reached, c.done = eventlog.Position(reached.Position), reached.Events
	if err := c.Pause(ctx, settle); err != nil || !fresh {
		return err
	}
	for r, err := range history(ctx, c.to.Log, eventlog.Start, 0) {
		if err != nil {
			return fmt.Errorf("the target cannot be read: %w", err)
		}
		return &Differs{Stream: r.Stream, Revision: r.Revision, Reason: "somebody wrote to the target when the copy began; copy to another log, and find out who"}
	}
	return nil
}

// round brings the target up to the source, and proves it.
func (c *copying) round(ctx context.Context) error {
	resumed := c.reached != eventlog.Start
	if err := c.forward(ctx); err != nil {
		return err
	}
	err := c.prove(ctx)
	var gone *missing
	if errors.As(err, &gone) && resumed { // the target has lost what it had
		c.reached, c.done = eventlog.Start, 0
		if err = c.forward(ctx); err == nil {
			err = c.prove(ctx)
		}
	}
	if err == nil {
		err = c.lookForMore(ctx)
	}
	return err
}

// forward copies what the source has beyond what was reached.
func (c *copying) forward(ctx context.Context) error {
	progress := c.stage(Copying)
	progress(c.done)
	w, last, kept := &window{}, c.reached, c.done
	put := func() error {
		if err := c.target.put(ctx, w); err != nil {
			return err
		}
		c.reached, c.done = last, c.done+uint64(len(w.events))
		c.report.Appended += uint64(len(w.events))
		progress(c.done)
		w = &window{}
		return nil
	}
	for r, err := range history(ctx, c.from.Log, c.reached, 0) {
		if err != nil {
			return fmt.Errorf("the source cannot be read: %w", err)
		}
		last = r.Position
		if w.add(r); !w.full() {
			continue
		}
		if err := put(); err != nil {
			return err
		}
		if c.done >= kept+keepEvery {
			if err := c.keep(ctx); err != nil {
				return err
			}
			kept = c.done
		}
	}
	if err := put(); err != nil {
		return err
	}
	if c.done == kept {
		return nil
	}
	return c.keep(ctx)
}

// keepEvery is after how many events the target takes note of how far it has got. A copy
// that is killed goes on from there.
const keepEvery = 16 * windowEvents

func (c *copying) keep(ctx context.Context) error {
	if c.done <= c.into.state.Reached().Events {
		return nil // it starts over, and was further before
	}
	return c.record(ctx, &c.into, events.CopyAdvanced{Copy: c.report.Copy, Position: uint64(c.reached), Events: c.done})
}

// prove checks that the target is what the source is, up to what was reached.
func (c *copying) prove(ctx context.Context) error {
	source, target := &view{Log: c.from.Log, end: c.reached}, &view{Log: c.to.Log}
	for _, check := range []func(context.Context) error{
		func(ctx context.Context) (err error) {
			c.report.Events, c.report.Streams, err = compare(ctx, source.ReadAll(ctx, eventlog.Start), target.ReadAll(ctx, eventlog.Start), c.stage(Comparing))
			return err
		},
		func(ctx context.Context) error { return c.audit(ctx, c.to.Log, c.ends, CheckingTarget) },
		func(ctx context.Context) error {
			a, err := newAnswers(source, target, c.Clock())
			if err != nil {
				return err
			}
			a.withdrawals, a.keys = c.asked.withdrawals, c.asked.keys
			err = a.compare(ctx, source, c.proved, c.stage(Asking))
			c.report.Withdrawals, c.report.Keys, c.sending = a.withdrawals, a.keys, a.sending
			return err
		},
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lookForMore finds out whether the source has moved on.
func (c *copying) lookForMore(ctx context.Context) error {
	c.report.MovedOn = false
	for _, err := range history(ctx, c.from.Log, c.reached, 0) {
		if err != nil {
			return fmt.Errorf("the source cannot be read: %w", err)
		}
		c.report.MovedOn = true
		break
	}
	return nil
}

// cutOver moves the ledger: the source is sealed, what came until then is copied, and the
// target is opened. There is no moment at which both are ledgers.
func (c *copying) cutOver(ctx context.Context) error {
	keeper, _ := c.source.state.Keeper()
	if err := c.atRest(keeper == aggregate.Gone); err != nil {
		return err
	}
	c.proved, c.asked.withdrawals, c.asked.keys = c.reached, c.report.Withdrawals, c.report.Keys
	if headed, ok := c.to.Log.(eventlog.Headed); ok {
		var err error
		if c.ends, err = headed.Head(ctx); err != nil {
			return fmt.Errorf("the target cannot be read: %w", err)
		}
	}
	if keeper == aggregate.Here {
		if err := c.record(ctx, &c.source, events.LedgerMoved{Copy: c.report.Copy, To: c.to.Name}); err != nil {
			return err
		}
	}
	if err := c.Pause(ctx, settle); err != nil {
		return err
	}
	for range rounds {
		if err := c.round(ctx); err != nil {
			return err
		}
		if c.report.MovedOn {
			continue
		}
		if err := c.atRest(true); err != nil {
			return err
		}
		if err := c.record(ctx, &c.into, events.CopyCompleted{Copy: c.report.Copy, Events: c.report.Events}); err != nil {
			return err
		}
		c.report.CutOver = true
		return nil
	}
	return &Busy{Sealed: true, Reason: "something still writes to the source, although the ledger has left it: stop every process that uses it, and copy again"}
}

// atRest returns [*Busy] when an attempt may be running: its answer would go to the source.
// What was at rest before the source was sealed still is.
func (c *copying) atRest(sealed bool) error {
	if c.sending == nil {
		return nil
	}
	a := c.sending.Claim
	return &Busy{Sealed: sealed, Reason: fmt.Sprintf("key %s may be sending withdrawal %s until %s, and the rail's answer would be recorded in the source: copy again after that",
		events.Quote(string(a.Key)), c.sending.ID, events.At(a.Attempt.Deadline))}
}
