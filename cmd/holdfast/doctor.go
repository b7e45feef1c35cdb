package main

import (
	"context"
	"errors"
	"fmt"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/submissions"
)

// doctorDocument is the result of doctor.
type doctorDocument struct {
	Log    string             `json:"log"`
	Well   bool               `json:"well"`
	Checks []examinedDocument `json:"checks"`
}

type examinedDocument struct {
	Check  string         `json:"check"`
	Grade  eventlog.Grade `json:"grade"`
	Detail string         `json:"detail"`
	Remedy string         `json:"remedy,omitempty"`
}

func (c *call) doctor() command {
	return command{
		name:  "doctor",
		usage: "check how the log is kept: access, retention, room",
		description: []string{
			"Looks at what the log needs and at what could take events away from it, and says what to do about each thing that is " +
				"not as it should be. For a file: what it is, its journal, who may write it, and how much room there is. For a KurrentDB: " +
				"whether the leader answers, what the user may do, whether any stream has $tb, $maxCount or $maxAge, and who may delete.",
			"It leaves nothing behind in the log. Warnings do not change the exit status; it is 6 where the user is not allowed what " +
				"is needed, 7 where events are being taken away, and 8 where the log cannot be reached. verify checks what is in the log.",
		},
		examples: []string{"doctor", "doctor --log 'esdb://admin:PASSWORD@a:2113,b:2113,c:2113?tlsCAFile=ca.crt' --json"},
		run: func(ctx context.Context) error {
			return c.withLog(ctx, reads, func(log eventlog.Log) error {
				d := doctorDocument{Log: place(c.log.value), Well: true, Checks: []examinedDocument{}}
				examined, ok := log.(eventlog.Examined)
				if !ok {
					return c.printDoctor(d)
				}
				findings, err := examined.Examine(ctx)
				if err != nil {
					return fmt.Errorf("the log could not be examined to the end: %w", err)
				}
				for _, f := range append(findings, keeper(ctx, log)) {
					d.Well = d.Well && f.Grade == eventlog.Fine
					d.Checks = append(d.Checks, examinedDocument{Check: f.Check, Grade: f.Grade, Detail: f.Detail, Remedy: f.Remedy})
				}
				if err := c.printDoctor(d); err != nil {
					return err
				}
				return c.worst(findings)
			})
		},
	}
}

// keeper looks whether commands act on the log.
func keeper(ctx context.Context, log eventlog.Log) eventlog.Finding {
	const check = "ledger"
	custody, _, err := submissions.Custody(ctx, log)
	if err != nil {
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: "whether commands act on the log cannot be read: " + err.Error(), Remedy: "see the other checks, and verify"}
	}
	var no *aggregate.NoLedger
	switch err := custody.Act(); {
	case !errors.As(err, &no):
		return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "commands act on it"}
	case no.Keeper == aggregate.Coming:
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: no.Error(), Remedy: "finish the copy with log copy --cut-over, or give it up with --take-back"}
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: no.Error(), Remedy: "name the log that took its place"}
}

func (c *call) printDoctor(d doctorDocument) error {
	return c.result(d, func(p *page) {
		p.line("Log: %s", legible(d.Log))
		for _, check := range d.Checks {
			p.line("%s: %s: %s", check.Grade, check.Check, legible(check.Detail))
			if check.Remedy != "" {
				p.line("    Remedy: %s", legible(check.Remedy))
			}
		}
		if d.Well {
			p.line("All is well.")
		}
	})
}

// worst returns the refusal that the worst finding stands for, or nil.
func (c *call) worst(findings []eventlog.Finding) error {
	for _, w := range []struct {
		grade   eventlog.Grade
		code    aggregate.Code
		message string
	}{
		{eventlog.Unreachable, aggregate.CodeUnavailable, "the log cannot be used now"},
		{eventlog.Losing, aggregate.CodeDamaged, "events are being taken away from the log"},
		{eventlog.Forbidden, aggregate.CodeForbidden, "the user is not allowed what the log's use needs"},
	} {
		for _, f := range findings {
			if f.Grade == w.grade {
				return &tryError{&aggregate.Refusal{Code: w.code, Message: w.message + ": " + f.Detail}, c.command("doctor", "--help")}
			}
		}
	}
	return nil
}
