package main

import (
	"context"
	"errors"
	"fmt"

	"holdfast/aggregate"
	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/events"
)

// verifyDocument is the result of verify.
type verifyDocument struct {
	Clean    bool              `json:"clean"`
	Events   uint64            `json:"events"`
	Streams  uint64            `json:"streams"`
	Findings []findingDocument `json:"findings"`
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
				if err := c.printReport(report); err != nil || report.Clean() {
					return err
				}
				refusal := &aggregate.Refusal{Code: aggregate.CodeDamaged, Message: counted(len(report.Findings), "finding") + " in the log"}
				return &tryError{refusal, c.command("verify", "--json")}
			})
		},
	}
}

// endOfReading is the finding that the log cannot be read beyond some place.
func endOfReading(d *eventlog.Damaged) audit.Finding {
	f := audit.Finding{Code: string(events.FaultTruncated), Stream: d.Stream, Reason: d.Reason + "; nothing after it was looked at"}
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

func (c *call) printReport(report audit.Report) error {
	d := verifyDocument{Clean: report.Clean(), Events: report.Events, Streams: report.Streams, Findings: []findingDocument{}}
	for _, f := range report.Findings {
		d.Findings = append(d.Findings, findingDocument{Code: f.Code, Stream: f.Stream, Revision: f.Revision, Reason: f.Reason})
	}
	return c.result(d, func(p *page) {
		if d.Clean {
			p.line("Clean: %s in %s, and nothing in them contradicts itself.", counted(int(d.Events), "event"), counted(int(d.Streams), "stream"))
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

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
