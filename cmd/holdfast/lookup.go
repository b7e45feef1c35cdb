package main

import (
	"context"

	"holdfast/events"
	"holdfast/submissions"
)

func (c *call) outcome() command {
	key := needed("key", "KEY", "the request key")
	return command{
		name:  "outcome",
		usage: "tell the truth about what a key holds",
		description: []string{
			"Prints the outcome of the key's withdrawal, in the same bytes as submit did, or how far it has got: " +
				"claimed, sending, unknown or refused, since when, and what can be done. " +
				"A key that lost, was refused or was released holds nothing, and is not found. " +
				"What the rail said later, and whether that is disputed, follows the outcome.",
		},
		examples: []string{"outcome --key req-1"},
		options:  []*option{key},
		run: func(ctx context.Context) error {
			return c.withLedger(ctx, reads, func(ledger *submissions.Ledger) error {
				status, err := ledger.Outcome(ctx, events.RequestKey(key.value))
				if err != nil {
					return err
				}
				return c.printStatus(status, true)
			})
		},
	}
}

func (c *call) claimedBy() command {
	withdrawal := needed("withdrawal", "ID", "the withdrawal")
	return command{
		name:  "claimed-by",
		usage: "tell who holds a withdrawal, and how far it has got",
		description: []string{
			"Prints the key that holds the withdrawal, the keys that held it before, what was requested and how far it has got: " +
				"what the rail said when the record had moved on, whether that is disputed, and the command lines of what can be done.",
		},
		examples: []string{"claimed-by --withdrawal wabcdefghijklmnopqrstuvwxyz234567"},
		options:  []*option{withdrawal},
		run: func(ctx context.Context) error {
			return c.withLedger(ctx, reads, func(ledger *submissions.Ledger) error {
				status, err := ledger.ClaimedBy(ctx, events.WithdrawalID(withdrawal.value))
				if err != nil {
					return err
				}
				return c.printStatus(status, false)
			})
		},
	}
}

// printStatus prints the truth about a withdrawal. For a person it is the outcome alone,
// where there is one and the outcome is what was asked for.
func (c *call) printStatus(s submissions.Status, outcomeOnly bool) error {
	d := c.status(s)
	return c.result(d, func(p *page) {
		if outcomeOnly && d.Outcome != nil {
			d.Outcome.page(p)
			if s.Claim != nil && s.Claim.Attempt != nil && len(d.LateAnswers) > 0 {
				p.fact("Token at the rail", s.Claim.Attempt.Token)
			}
			d.disputePage(p)
			return
		}
		d.page(p, s)
		if d.Outcome != nil {
			p.line("")
			d.Outcome.page(p)
		}
		d.advice.page(p)
	})
}
