package main

import (
	"context"
	"fmt"

	"holdfast/internal/shell"
	"holdfast/submissions"
)

// inFlightDocument is the result of in-flight: disputed first, then the oldest first.
type inFlightDocument struct {
	InFlight []statusDocument `json:"in_flight"`
}

func (c *call) inFlight() command {
	return command{
		name:  "in-flight",
		usage: "list what waits for somebody",
		description: []string{
			"Lists the withdrawals that are claimed and have no outcome, and those that are disputed, which come first; " +
				"then the oldest. Nothing leaves this list by itself: a person resolves or releases it, under the key that is shown. " +
				"It reads the whole log.",
		},
		examples: []string{"in-flight", "in-flight --json"},
		run: func(ctx context.Context) error {
			return c.withLedger(ctx, reads, func(ledger *submissions.Ledger) error {
				list, err := ledger.InFlight(ctx)
				if err != nil && list == nil {
					return err
				}
				if printing := c.printInFlight(list); printing != nil {
					return printing
				}
				return err // the list has all but what is damaged
			})
		},
	}
}

func (c *call) printInFlight(list []submissions.Status) error {
	d := inFlightDocument{InFlight: []statusDocument{}}
	for _, s := range list {
		d.InFlight = append(d.InFlight, c.status(s))
	}
	return c.result(d, func(p *page) {
		if len(list) == 0 {
			p.line("Nothing is in flight for tenant %s in %s", c.tenant.value, place(c.log.value))
			return
		}
		var rows [][]string
		for i, s := range list {
			item := d.InFlight[i]
			key, can := item.Holder, item.advice.summary(p.now)
			if s.Dispute != nil && key == "" {
				key, can = "-", "resolve with --withdrawal "+item.Withdrawal+" and any key"
			}
			rows = append(rows, []string{
				item.statusWord(), age(p.now.Sub(s.WaitingSince())), key, item.Withdrawal,
				fmt.Sprintf("%s %s", item.Amount, item.Currency), can,
			})
		}
		p.table([]string{"STATE", "AGE", "KEY", "WITHDRAWAL", "AMOUNT", "CAN BE DONE"}, rows)
		p.line("")
		p.line("The command lines are in: %s", shell.Join(c.command("claimed-by", "--withdrawal", "ID")...))
	})
}
