package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"holdfast/aggregate"
	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/events"
)

// exportDocument is the result of audit export, and part of that of audit verify.
type exportDocument struct {
	Bundle  string `json:"bundle"`
	Events  uint64 `json:"events"`
	Streams uint64 `json:"streams"`
	// Head is the position of the last event, SHA256 the digest of the lines of events.
	Head   uint64 `json:"head"`
	SHA256 string `json:"sha256"`
}

func newExportDocument(path string, x audit.Exported) exportDocument {
	return exportDocument{Bundle: path, Events: x.Events, Streams: x.Streams, Head: uint64(x.Head), SHA256: x.SHA256}
}

func (c *call) auditExport() command {
	to := needed("to", "FILE", "the bundle that is written; it must not be there yet")
	withdrawal := text("withdrawal", "ID", "only this withdrawal, and the keys that claimed it")
	return command{
		name:  "audit export",
		usage: "write the log as one file that others can check by themselves",
		description: []string{
			"Writes every event as it is stored, byte for byte, with its place and its chain, into one file of lines of JSON. audit verify " +
				"checks it without the log, and docs/AUDIT_FORMAT.md says how anybody can do so without this program. The same log gives " +
				"the same file.",
			"Keep the head and the digest that it prints elsewhere: a later bundle that does not reach that far has lost something.",
		},
		examples: []string{"audit export --to audit.jsonl", "audit export --withdrawal wf3cf2evn5ejbvu2637fqqqje3jyvu3cv --to disputed.jsonl --json"},
		options:  []*option{to, withdrawal},
		run: func(ctx context.Context) error {
			id := events.WithdrawalID(withdrawal.value)
			if id != "" {
				if err := id.Validate(); err != nil {
					return c.usage("%w", err)
				}
			}
			return c.withLog(ctx, reads, func(log eventlog.Log) error {
				exported, err := c.exported(ctx, log, id, to.value)
				if err != nil {
					return err
				}
				d := newExportDocument(to.value, exported)
				return c.result(d, func(p *page) {
					p.fact("Bundle", legible(d.Bundle))
					p.fact("Events", fmt.Sprintf("%d in %d streams", d.Events, d.Streams))
					p.fact("Head", fmt.Sprint(d.Head))
					p.fact("SHA-256", d.SHA256)
				})
			})
		},
	}
}

// exported writes a bundle beside its place, and then puts it there.
func (c *call) exported(ctx context.Context, log eventlog.Log, id events.WithdrawalID, path string) (x audit.Exported, err error) {
	if _, err := os.Lstat(path); err == nil {
		return x, c.usage("%s is there already; name another file", events.Quote(path))
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return x, c.usage("the bundle cannot be written: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // it is no bundle
		}
	}()
	if id == "" {
		progress := c.progressOver(ctx, log)
		x, err = audit.Export(ctx, log, file, progress.at)
		progress.stop()
	} else {
		x, err = audit.ExportWithdrawal(ctx, log, id, file)
	}
	err = errors.Join(err, file.Chmod(0o600), file.Sync(), file.Close())
	if err != nil {
		return x, c.unexported(err, id)
	}
	// Unlike a renaming, this replaces nothing.
	err = os.Link(file.Name(), path)
	if err == nil {
		err = os.Remove(file.Name())
	}
	return x, err
}

// unexported gives an error of exporting its code.
func (c *call) unexported(err error, id events.WithdrawalID) error {
	var missing *eventlog.Damaged
	var damage *events.Damage
	switch {
	case errors.Is(err, audit.ErrNoWithdrawal):
		return &aggregate.Refusal{Code: aggregate.CodeNotFound, Withdrawal: id, Message: fmt.Sprintf("there is no withdrawal %s", id)}
	case errors.As(err, &missing), errors.As(err, &damage):
		return &aggregate.Refusal{Code: aggregate.CodeDamaged, Withdrawal: id, Message: "the log is not sound, and nothing was exported; without --withdrawal everything that is there is", Cause: err}
	}
	return err
}

// bundleDocument is the result of audit verify.
type bundleDocument struct {
	exportDocument
	Clean    bool              `json:"clean"`
	Findings []findingDocument `json:"findings"`
}

func (c *call) auditVerify() command {
	bundle := needed("bundle", "FILE", "the bundle; it can be given bare")
	return command{
		name:     "audit verify",
		usage:    "check a bundle, without the log that it was made of",
		argument: bundle,
		description: []string{
			"Checks the file's form and digest, every event's bytes, place, predecessor and order, and that keys and claims agree. It needs " +
				"no log and trusts nobody. Findings are printed with their codes, and the exit status is then 7.",
			"What was never in the file it cannot miss: compare the head and the digest with what audit export printed.",
		},
		examples: []string{"audit verify audit.jsonl", "audit verify audit.jsonl --json"},
		options:  []*option{bundle},
		run: func(ctx context.Context) error {
			file, err := os.Open(bundle.value)
			if err != nil {
				return c.usage("the bundle cannot be read: %w", err)
			}
			defer file.Close()
			progress := c.startProgress(0)
			report, x, err := audit.VerifyBundle(ctx, file, progress.at)
			progress.stop()
			if err != nil {
				return c.unreadable(ctx, err)
			}
			if err := c.printBundle(bundleDocument{newExportDocument(bundle.value, x), report.Clean(), findings(report)}); err != nil || report.Clean() {
				return err
			}
			refusal := &aggregate.Refusal{Code: aggregate.CodeDamaged, Message: counted(len(report.Findings), "finding") + " in the bundle"}
			return &tryError{refusal, []string{programName, "help", "audit", "verify"}}
		},
	}
}

// replayDocument is the result of audit replay.
type replayDocument struct {
	Events      uint64             `json:"events"`
	Decisions   uint64             `json:"decisions"`
	Unreadable  uint64             `json:"unreadable_streams"`
	Divergences []audit.Divergence `json:"divergences"`
}

func (c *call) auditReplay() command {
	return command{
		name:  "audit replay",
		usage: "decide everything in the log anew, with this build",
		description: []string{
			"Takes every decision in the log from the state that there was before it, decides anew, and prints those that this build would " +
				"make in another way. Nothing is written. The exit status is 7 where there are any.",
			"Commands that were refused left no trace, so they are not among them. What a caller restated, what a person had seen, and by " +
				"how much clocks were taken to disagree are not on record; they are taken for whatever lets the command through.",
		},
		examples: []string{"audit replay", "audit replay --log sqlite:copy.db --json"},
		run: func(ctx context.Context) error {
			return c.withLog(ctx, reads, func(log eventlog.Log) error {
				progress := c.progressOver(ctx, log)
				done, err := audit.Replay(ctx, log, progress.at)
				progress.stop()
				if err != nil {
					return err
				}
				d := replayDocument{Events: done.Events, Decisions: done.Decisions, Unreadable: done.Unreadable, Divergences: done.Divergences}
				if err := c.printReplay(d); err != nil {
					return err
				}
				switch {
				case len(d.Divergences) > 0:
					refusal := &aggregate.Refusal{Code: aggregate.CodeDamaged, Message: counted(len(d.Divergences), "decision") + " would come out differently today"}
					return &tryError{refusal, []string{programName, "help", "audit", "replay"}}
				case d.Unreadable > 0:
					return &tryError{&aggregate.Refusal{Code: aggregate.CodeDamaged, Message: counted(int(d.Unreadable), "stream") + " cannot be read to the end"}, c.command("verify")}
				}
				return nil
			})
		},
	}
}

func (c *call) printReplay(d replayDocument) error {
	return c.result(d, func(p *page) {
		for _, x := range d.Divergences {
			p.line("%s, revision %d: recorded %s; today %s", legible(x.Stream), x.Revision, legible(x.Recorded), legible(x.Today))
		}
		if len(d.Divergences) == 0 {
			p.line("The same today: %s, in %s.", counted(int(d.Decisions), "decision"), counted(int(d.Events), "event"))
		}
	})
}

// unreadable is the error of a file that is no bundle.
func (c *call) unreadable(ctx context.Context, err error) error {
	var path *os.PathError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &path), errors.Is(err, io.ErrUnexpectedEOF):
		return c.usage("the bundle cannot be read: %w", err)
	}
	return c.usage("%w", err)
}

func (c *call) printBundle(d bundleDocument) error {
	return c.result(d, func(p *page) {
		for _, f := range d.Findings {
			where := f.Stream
			if where == "" {
				where = "the whole bundle"
			}
			p.line("%s: %s, revision %d: %s", f.Code, legible(where), f.Revision, legible(f.Reason))
		}
		if d.Clean {
			p.line("Clean: %s, and nothing in them contradicts itself.", counted(int(d.Events), "event"))
		}
		p.fact("Head", fmt.Sprint(d.Head))
		p.fact("SHA-256", d.SHA256)
	})
}

func findings(r audit.Report) []findingDocument {
	list := []findingDocument{}
	for _, f := range r.Findings {
		list = append(list, findingDocument(f))
	}
	return list
}
