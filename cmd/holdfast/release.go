package main

import (
	"context"

	"holdfast/events"
	"holdfast/submissions"
)

// releaseDocument is the result of release.
type releaseDocument struct {
	Withdrawal string `json:"withdrawal"`
	State      string `json:"state"`
	pastClaimDocument
}

func (c *call) release() command {
	w := newWord()
	return command{
		name:  "release",
		usage: "free a key and its withdrawal, after seeing that nothing was sent",
		description: []string{
			"Gives up a claim: \"I looked, nothing was sent\". The key and the withdrawal are free, and whoever comes next, " +
				"under any key, becomes the holder and may send. It is refused once there is an outcome, and while an attempt " +
				"may still be running. The facts are shown first, with what the rail says where --rail is given. " +
				"Where the rail says that it was sent, it is refused unless --against-the-rail is given too.",
			"If the money did leave, this is how it leaves twice, so it wants a confirmation: on a terminal, the last 6 " +
				"characters of the withdrawal's id; elsewhere --confirm with those characters, or --yes.",
		},
		examples: []string{
			"release --key req-1 --reason 'timed out' --evidence 'not in the bank statement of 3 May'",
		},
		options: w.options(),
		run: func(ctx context.Context) error {
			by, err := c.person()
			if err != nil {
				return err
			}
			return c.withLedger(ctx, writes, func(ledger *submissions.Ledger) error {
				return c.releaseWith(ctx, ledger, w, submissions.Release{By: by, Reason: w.reason.value, Evidence: w.evidence.value})
			})
		},
	}
}

func (c *call) releaseWith(ctx context.Context, ledger *submissions.Ledger, w word, r submissions.Release) error {
	key := events.RequestKey(w.key.value)
	status, err := ledger.Outcome(ctx, key)
	if err != nil {
		return err
	}
	if status.Outcome == nil { // otherwise it is refused (B4), and there is nothing to confirm
		if err := c.confirmed(ctx, w, status, said{verb: "release"}); err != nil {
			return err
		}
	}
	r.Seen = status.Events
	if status, err = ledger.Release(ctx, key, r); err != nil {
		return err
	}
	d := releaseDocument{Withdrawal: string(status.ID), State: string(status.State)}
	for _, past := range status.PastClaims {
		if past.Key == key {
			d.pastClaimDocument = newPastClaimDocument(past)
		}
	}
	return c.result(d, func(p *page) {
		p.fact("Released", d.Withdrawal)
		p.fact("Key", d.Key)
		p.fact("Released at", d.ReleasedAt)
		p.fact("Released by", d.ReleasedBy)
		p.fact("Reason", d.Reason)
		p.fact("Evidence", d.Evidence)
	})
}
