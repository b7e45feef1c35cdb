package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"holdfast/aggregate"
	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/internal/shell"
	"holdfast/submissions"
)

// verifyDocument is the result of verify.
type verifyDocument struct {
	Clean    bool              `json:"clean"`
	Events   uint64            `json:"events"`
	Streams  uint64            `json:"streams"`
	Findings []findingDocument `json:"findings"`
	// OpenDisputes counts the tenant's withdrawals on which the rail contradicts the
	// record. They are no findings: the record is sound. It is left out where the log
	// is not clean.
	OpenDisputes *int `json:"open_disputes,omitempty"`
}

type findingDocument struct {
	Code     string `json:"code"`
	Stream   string `json:"stream,omitempty"`
	Revision uint64 `json:"revision"`
	Reason   string `json:"reason"`
}

func (c *call) verify() command {
	return command{
		name:  "verify",
		usage: "check the whole log against what it must be",
		description: []string{
			"Reads every event of every tenant and checks its bytes, its place, its predecessor and its order, and that keys " +
				"and claims agree. It trusts nothing and changes nothing. Findings are printed with their codes, and the exit " +
				"status is then 7. Progress goes to standard error.",
			"Open disputes of the tenant are counted beside it. They are no findings, and do not change the exit status.",
			"After findings: keep the files as they are, with those beside them, and take a copy. history shows what is before the " +
				"damage of a withdrawal, and a copy of the log from before it shows what was there. No command acts on a damaged " +
				"stream; the others go on.",
		},
		examples: []string{"verify", "verify --log sqlite:copy.db --json"},
		run: func(ctx context.Context) error {
			return c.withLog(ctx, reads, func(log eventlog.Log) error {
				report, err := c.audited(ctx, log)
				var damaged *eventlog.Damaged
				switch {
				case errors.As(err, &damaged): // reading ended there, which is a finding like the others
					report.Findings = append(report.Findings, endOfReading(damaged))
				case err != nil:
					return fmt.Errorf("the log could not be read to its end: %w", err)
				}
				var disputes *int
				if report.Clean() {
					if disputes, err = c.openDisputes(ctx, log); err != nil {
						return err
					}
				}
				if err := c.printReport(report, disputes); err != nil || report.Clean() {
					return err
				}
				refusal := &aggregate.Refusal{Code: aggregate.CodeDamaged, Message: counted(len(report.Findings), "finding") + " in the log"}
				return &tryError{refusal, c.afterFindings(report.Findings)}
			})
		},
	}
}

// endOfReading is the finding that the log cannot be read beyond some place.
func endOfReading(d *eventlog.Damaged) audit.Finding {
	f := audit.Finding{Code: string(d.Kind), Stream: d.Stream, Reason: d.Reason + "; nothing after it was looked at"}
	if d.Stream == eventlog.WholeLog {
		f.Stream = ""
	}
	return f
}

// audited verifies the log and shows how far it is.
func (c *call) audited(ctx context.Context, log eventlog.Log) (audit.Report, error) {
	total, _, err := head(ctx, log)
	if err != nil {
		total = 0 // verify says what is wrong; the bar only goes without an end
	}
	progress := c.startProgress(total)
	defer progress.stop()
	return audit.Verify(ctx, log, progress.at)
}

// openDisputes counts the tenant's open disputes.
func (c *call) openDisputes(ctx context.Context, log eventlog.Log) (*int, error) {
	ledger, err := submissions.New(log, &submissions.Options{Clock: c.now, NewID: c.newID})
	if err != nil {
		return nil, err
	}
	list, err := ledger.For(events.Tenant(c.tenant.value)).InFlight(ctx)
	var no *aggregate.NoLedger
	if errors.As(err, &no) { // a sound record, from which nobody is told anything
		c.note("beside that, %s", no.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	count := 0
	for _, s := range list {
		if s.Dispute != nil {
			count++
		}
	}
	return &count, nil
}

// afterFindings is what to look at next: the history of a withdrawal that is damaged, or
// what to do about the rest.
func (c *call) afterFindings(findings []audit.Finding) []string {
	for _, f := range findings {
		if id, ok := events.WithdrawalOfStream(f.Stream); ok {
			return c.command("history", "--withdrawal", string(id))
		}
	}
	return []string{programName, "help", "verify"}
}

func (c *call) printReport(report audit.Report, disputes *int) error {
	d := verifyDocument{Clean: report.Clean(), Events: report.Events, Streams: report.Streams, Findings: []findingDocument{}, OpenDisputes: disputes}
	for _, f := range report.Findings {
		d.Findings = append(d.Findings, findingDocument{Code: cmp.Or(f.Code, string(events.FaultGap)), Stream: f.Stream, Revision: f.Revision, Reason: f.Reason})
	}
	return c.result(d, func(p *page) {
		if d.Clean {
			p.line("Clean: %s in %s, and nothing in them contradicts itself.", counted(int(d.Events), "event"), counted(int(d.Streams), "stream"))
			if disputes != nil && *disputes > 0 {
				p.line("Beside that, %s open for tenant %s, which waits for a person: %s", isAre(*disputes, "dispute"), c.tenant.value, shell.Join(c.command("in-flight")...))
			}
			return
		}
		for _, f := range d.Findings {
			where := f.Stream
			if where == "" {
				where = "the whole log"
			}
			p.line("%s: %s, revision %d: %s", f.Code, legible(where), f.Revision, legible(f.Reason))
		}
		p.line("%s in %s of %s.", counted(len(d.Findings), "finding"), counted(int(d.Events), "event"), counted(int(d.Streams), "stream"))
	})
}

func isAre(n int, noun string) string {
	if n == 1 {
		return counted(n, noun) + " is"
	}
	return counted(n, noun) + " are"
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
