package main

import (
	"context"
	"math"

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
				"The facts are shown first, with what the rail says where --rail is given. " +
				"Where the rail says that it was sent, --failed is refused unless --against-the-rail is given too.",
			"Where the rail's late answer contradicts the record, the withdrawal is disputed, and nothing more is sent until a " +
				"person closes the dispute: resolve it under the key that holds it, with the outcome that is on record, once more " +
				"(where nobody holds it: with --withdrawal, any key, and what happened). The outcome stays as it is; your reason and " +
				"evidence, and what the rail said, are on record beside it. claimed-by prints the complete command line.",
			"It is final, so it wants a confirmation: on a terminal, the last 6 characters of the withdrawal's id; " +
				"elsewhere --confirm with those characters, or --yes.",
		},
		examples: []string{
			"resolve --key req-1 --sent sim-4f1d --reason 'timed out' --evidence 'bank statement line 12'",
			"resolve --key req-1 --failed --reason 'account closed' --evidence 'mail of the bank, 3 May' --yes",
		},
		options: append(w.options(sent, failed, withdrawal), restated.options()...),
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
	// What would be refused anyway is not asked about. Nobody has seen that many events,
	// so this writes nothing: it is refused at the latest because of them.
	r.Seen = math.MaxUint64
	if _, err := ledger.Resolve(ctx, key, r); err != nil {
		if code, _ := submissions.CodeOf(err); code != submissions.CodeAttemptRunning {
			return err
		}
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
	if status.Dispute != nil {
		c.note("Your word is on record, and the dispute is closed; what the rail said stays on record beside the outcome")
	}
	return c.told(outcome, false)
}
