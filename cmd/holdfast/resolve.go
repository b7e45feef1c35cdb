package main

import (
	"context"

	"holdfast/events"
	"holdfast/submissions"
)

func (c *call) resolve() command {
	w := newWord()
	withdrawal := text("withdrawal", "ID", "the withdrawal, for a key that never submitted one")
	sent := text("sent", "REFERENCE", "the money left, under this reference of the rail's")
	failed := toggle("failed", "nothing left, and the withdrawal is given up")
	restated := newRestatement()
	return command{
		name:  "resolve",
		usage: "put on record what happened, after looking at the rail",
		description: []string{
			"Closes a key with an outcome: \"I looked, here is what happened\". From then on submit replays it. " +
				"It also closes a dispute. The facts are shown first, with what the rail says where --rail is given.",
			"It is final, so it wants a confirmation: on a terminal, the last 6 characters of the withdrawal's id; " +
				"elsewhere --confirm with those characters, or --yes.",
		},
		examples: []string{
			"resolve --key req-1 --sent sim-4f1d --reason 'timed out' --evidence 'bank statement line 12'",
			"resolve --key req-1 --failed --reason 'account closed' --evidence 'mail of the bank, 3 May' --yes",
		},
		options: append([]*option{w.key, sent, failed, w.reason, w.evidence, withdrawal, w.rail, w.yes, w.confirm}, restated.options()...),
		run: func(ctx context.Context) error {
			about := said{verb: "resolve", result: events.ResultFailed}
			switch {
			case sent.given && failed.on():
				return c.usage("--sent and --failed contradict each other; give one of them")
			case sent.given:
				about.result, about.reference = events.ResultSent, sent.value
			case !failed.on():
				return c.usage("say what happened: --sent REFERENCE, or --failed")
			}
			by, err := c.person()
			if err != nil {
				return err
			}
			resolution := submissions.Resolution{
				By: by, Withdrawal: events.WithdrawalID(withdrawal.value), Restated: restated.restated(),
				Result: about.result, Reference: about.reference, Reason: w.reason.value, Evidence: w.evidence.value,
			}
			return c.withLedger(ctx, writes, func(ledger *submissions.Ledger) error {
				return c.resolveWith(ctx, ledger, w, about, resolution)
			})
		},
	}
}

func (c *call) resolveWith(ctx context.Context, ledger *submissions.Ledger, w word, about said, r submissions.Resolution) error {
	key := events.RequestKey(w.key.value)
	var status submissions.Status
	var err error
	if r.Withdrawal != "" {
		status, err = ledger.ClaimedBy(ctx, r.Withdrawal)
	} else {
		status, err = ledger.Outcome(ctx, key)
	}
	if err != nil {
		return err
	}
	// What is closed stays as it is (B3): there is nothing to confirm.
	if status.Outcome == nil || status.Dispute != nil {
		if err := c.confirmed(ctx, w, status, about); err != nil {
			return err
		}
	}
	r.Seen = status.Events
	outcome, err := ledger.Resolve(ctx, key, r)
	if err != nil {
		return err
	}
	return c.told(outcome, false)
}
