package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/internal/shell"
	"holdfast/transfer"
)

// copyDocument is the result of log copy.
type copyDocument struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Copy        string `json:"copy"`
	Events      uint64 `json:"events"`
	Streams     uint64 `json:"streams"`
	Appended    uint64 `json:"appended"`
	Withdrawals uint64 `json:"withdrawals"`
	Keys        uint64 `json:"keys"`
	MovedOn     bool   `json:"moved_on"`
	// Ledger is the log that commands act on now.
	Ledger  string `json:"ledger"`
	Already bool   `json:"already,omitempty"`
}

// logCopy has a name of two words, which dispatch puts together.
func (c *call) logCopy() command {
	from := needed("from", "URL", "the log that is copied")
	to := needed("to", "URL", "the log that is copied into: one that is empty, or that an earlier copy from there began")
	cutOver := toggle("cut-over", "move the ledger: from then on commands act on the target, and on the source no more")
	takeBack := toggle("take-back", "give a copy up that was not completed: the source is the ledger again")
	return command{
		name:  "log copy",
		usage: "copy the log to another engine, and move the ledger there",
		description: []string{
			"Copies every event with its stream, revision, id, type and bytes, and then proves it: both logs hold the same events, the " +
				"target verifies, and both give the same answers about every key and every withdrawal. It can be interrupted, or killed, " +
				"and run again; it goes on where it was.",
			"The target is no ledger: every command on it is refused (unavailable), so that nothing is paid from two logs. Copy as often " +
				"as you like while the source is in use; each copy brings what is new. Then stop what uses the source, and copy with " +
				"--cut-over: the source is sealed, the rest is copied and proved, and the target becomes the ledger. In between neither is " +
				"one. If that gets stuck, run it again, or give it up with --take-back.",
			"docs/MOVING.md has the whole procedure, and the way back.",
		},
		examples: []string{
			"log copy --from sqlite:/var/lib/holdfast/holdfast.db --to 'esdb://USER:PASSWORD@a:2113,b:2113,c:2113?tlsCAFile=ca.crt'",
			"log copy --from sqlite:/var/lib/holdfast/holdfast.db --to esdb://127.0.0.1:2113?tls=false --cut-over --json",
		},
		options: []*option{from, to, cutOver, takeBack},
		run: func(ctx context.Context) error {
			switch {
			case c.log.given:
				return c.usage("--log is not for this command; the logs are --from and --to")
			case cutOver.on() && takeBack.on():
				return c.usage("--cut-over and --take-back are opposites")
			}
			run, ofSource, ofTarget := c.copyLogs(cutOver.on()), reads, creates
			if cutOver.on() || takeBack.on() {
				ofSource = writes
			}
			if takeBack.on() {
				run, ofTarget = c.takeBack, writes
			}
			return c.withLogAt(ctx, from.value, ofSource, func(source eventlog.Log) error {
				return c.withLogAt(ctx, to.value, ofTarget, func(target eventlog.Log) error {
					return run(ctx, transfer.Place{Log: source, Name: place(from.value)}, transfer.Place{Log: target, Name: place(to.value)})
				})
			})
		},
	}
}

func (c *call) copyOptions(cutOver bool) *transfer.Options {
	return &transfer.Options{Actor: c.by().Actor, CutOver: cutOver, Clock: c.now, NewID: c.newID}
}

func (c *call) copyLogs(cutOver bool) func(ctx context.Context, from, to transfer.Place) error {
	return func(ctx context.Context, from, to transfer.Place) error {
		total, _, err := head(ctx, from.Log)
		if err != nil {
			total = 0 // the copy says what is wrong; the bar only goes without an end
		}
		stages := &stages{call: c, total: total}
		o := c.copyOptions(cutOver)
		o.Progress = stages.at
		report, err := transfer.Copy(ctx, from, to, o)
		stages.end()
		if err != nil {
			return c.copyFailed(err, from, to)
		}
		return c.printCopy(report, from, to)
	}
}

func (c *call) takeBack(ctx context.Context, from, to transfer.Place) error {
	report, err := transfer.TakeBack(ctx, from, to, c.copyOptions(false))
	if err != nil {
		return c.copyFailed(err, from, to)
	}
	return c.result(copyDocument{From: from.Name, To: to.Name, Copy: report.Copy, Ledger: from.Name}, func(p *page) {
		p.line("The copy was given up. Commands act on %s, and not on %s", legible(from.Name), legible(to.Name))
	})
}

func (c *call) printCopy(r transfer.Report, from, to transfer.Place) error {
	d := copyDocument{
		From: from.Name, To: to.Name, Copy: r.Copy, Events: r.Events, Streams: r.Streams, Appended: r.Appended,
		Withdrawals: r.Withdrawals, Keys: r.Keys, MovedOn: r.MovedOn, Ledger: from.Name, Already: r.Already,
	}
	if r.CutOver {
		d.Ledger = to.Name
	}
	return c.result(d, func(p *page) {
		if r.Already {
			p.line("The ledger had been moved before; nothing was done.")
		} else {
			p.line("Copied: %s in %s; %d of them were new.", counted(int(r.Events), "event"), counted(int(r.Streams), "stream"), r.Appended)
			p.line("Proved: both logs hold the same events, the target verifies, and both answer the same about %s and %s.",
				counted(int(r.Withdrawals), "withdrawal"), counted(int(r.Keys), "key"))
		}
		if r.MovedOn {
			p.line("The source has moved on since; what came is not in the target yet.")
		}
		p.line("Commands act on %s", legible(d.Ledger))
		if !r.CutOver {
			p.line("The target is no ledger until: %s", shell.Join(c.again("--cut-over")...))
		}
	})
}

// copyFailed gives an error of a copy its code, and what can be tried.
func (c *call) copyFailed(err error, from, to transfer.Place) error {
	refusal := func(code aggregate.Code, message string, try ...string) error {
		return &tryError{&aggregate.Refusal{Code: code, Message: strings.TrimPrefix(message, "transfer: ")}, try}
	}
	var refused *transfer.Refused
	var differs *transfer.Differs
	var unsound *transfer.Unsound
	var busy *transfer.Busy
	var damaged *eventlog.Damaged
	var damage *events.Damage
	switch {
	case errors.As(err, &refused):
		return refusal(aggregate.CodeInvalidRequest, refused.Reason+"; "+refused.Try, programName, "log", "copy", "--help")
	case errors.As(err, &unsound):
		which := from
		if unsound.Target {
			which = to
		}
		return refusal(aggregate.CodeDamaged, unsound.Error(), programName, "verify", "--log", which.Name)
	case errors.As(err, &differs):
		return refusal(aggregate.CodeDamaged, differs.Error()+"; the target is no ledger, copy to an empty one", programName, "log", "copy", "--help")
	case errors.As(err, &damaged), errors.As(err, &damage):
		return refusal(aggregate.CodeDamaged, err.Error(), programName, "log", "copy", "--help")
	case errors.As(err, &busy) && busy.Sealed:
		return refusal(aggregate.CodeUnavailable, busy.Error()+"; until then commands act on neither log", c.again()...)
	case errors.As(err, &busy):
		return refusal(aggregate.CodeUnavailable, busy.Error(), c.again()...)
	case errors.Is(err, eventlog.ErrForbidden):
		return refusal(aggregate.CodeForbidden, err.Error(), programName, "doctor", "--log", to.Name)
	}
	return fmt.Errorf("the copy did not end, and goes on where it was when it is run again: %w", err)
}

// stages shows what a copy is at, and how far each stage is.
type stages struct {
	*call
	total   uint64 // events of the source, 0 until they are counted
	counted uint64
	stage   transfer.Stage
	showing *progress
}

func (s *stages) at(stage transfer.Stage, events uint64) {
	if s.showing == nil || s.stage != stage {
		s.end()
		if s.stage == transfer.CheckingSource && s.total == 0 {
			s.total = s.counted
		}
		s.stage = stage
		s.tell(strings.ToUpper(string(stage[:1])) + string(stage[1:]))
		s.showing = s.startProgress(s.total)
	}
	s.counted = events
	s.showing.at(events)
}

// end takes away what is shown.
func (s *stages) end() {
	if s.showing != nil {
		s.showing.stop()
		s.showing = nil
	}
}
