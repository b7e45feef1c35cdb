package main

import (
	"context"
	"sync/atomic"

	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// restatement is the flags by which a caller says what it believes it is paying.
type restatement struct{ amount, currency, destination *option }

func newRestatement() restatement {
	return restatement{
		amount:      text("amount", "DECIMAL", "what you believe the amount is; a difference is refused"),
		currency:    text("currency", "CODE", "what you believe the currency is"),
		destination: text("destination", "TEXT", "what you believe the destination is"),
	}
}

func (r restatement) options() []*option { return []*option{r.amount, r.currency, r.destination} }

func (r restatement) restated() submissions.Restated {
	return submissions.Restated{Amount: r.amount.value, Currency: r.currency.value, Destination: r.destination.value}
}

func (c *call) submit() command {
	key := needed("key", "KEY", "the request key of this submission")
	withdrawal := needed("withdrawal", "ID", "the withdrawal to pay")
	spec := railOption()
	spec.required = true
	fault := text("fault", "NAME", "how the simulated rail is to fail, such as timeout-after")
	timeout := text("timeout", "DURATION", "how long the rail may take")
	timeout.initial = submissions.DefaultSendTimeout.String()
	raw := toggle("raw", "print the rail's response alone, byte for byte")
	restated := newRestatement()
	return command{
		name:  "submit",
		usage: "pay a withdrawal at most once, and print its outcome",
		description: []string{
			"Takes the claim on the withdrawal for the key, on disk, then calls the rail once, then records the answer. " +
				"Submitting again under the same key prints the same outcome, byte for byte, and the rail is not called; " +
				"that it was a replay is said on standard error alone, and so is that the rail has contradicted it since.",
			"A send that fails keeps its claim, because nobody knows whether the money left: the exit status is 5, and " +
				"a person looks at the rail and says what happened (resolve) or that nothing did (release).",
		},
		examples: []string{
			"submit --key req-1 --withdrawal wabcdefghijklmnopqrstuvwxyz234567 --rail simulated:book.jsonl",
			"submit --key req-1 --withdrawal wabcdefghijklmnopqrstuvwxyz234567 --amount 10.25 --currency EUR --json",
		},
		options: append([]*option{key, withdrawal, spec, fault, timeout, raw}, restated.options()...),
		run: func(ctx context.Context) error {
			limit, err := timeout.duration()
			if err != nil {
				return c.usage("%w", err)
			}
			if raw.on() && c.json.on() {
				return c.usage("--raw and --json are two ways to print one result; give one of them")
			}
			payer, err := c.openRail(c.program, spec.value, fault.value)
			if err != nil {
				return c.usage("%w", err)
			}
			return c.withLedger(ctx, writes, func(ledger *submissions.Ledger) error {
				c.heard = &heard{}
				outcome, err := ledger.Submit(ctx, events.RequestKey(key.value), events.WithdrawalID(withdrawal.value), c.heard.listen(payer.Send),
					&submissions.SubmitOptions{By: c.by(), Restated: restated.restated(), Rail: payer.Name(), Timeout: limit})
				if err != nil {
					return err
				}
				if outcome.Disputed {
					c.warn("the rail contradicts this outcome; see what it said, and what was said to that, before you act on it",
						c.command("claimed-by", "--withdrawal", string(outcome.Withdrawal))...)
				}
				return c.told(outcome, raw.on())
			})
		},
	}
}

// told prints an outcome, as its first caller and every later one is told it.
func (c *call) told(o submissions.Outcome, raw bool) error {
	if o.Replayed {
		c.note("This is a replay: the outcome was recorded at %s, and nothing was sent now", stamp(o.ResolvedAt))
	}
	if raw {
		return c.print(string(o.Response.Body))
	}
	d := newOutcomeDocument(o)
	return c.result(d, d.page)
}

// heard is what the rail said, for when it cannot be recorded.
type heard struct{ answer atomic.Value }

// listen returns a sender that remembers what the rail said.
func (h *heard) listen(send rail.Sender) rail.Sender {
	return func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		receipt, err := send(ctx, p)
		switch {
		case err != nil:
			h.answer.Store(oneLine(err.Error()))
		case receipt.Reference == "":
			h.answer.Store("without a reference")
		default:
			h.answer.Store("sent as " + legible(receipt.Reference))
		}
		return receipt, err
	}
}

// said returns what the rail said, and "" when it has not answered.
func (h *heard) said() string {
	if h == nil {
		return ""
	}
	said, _ := h.answer.Load().(string)
	return said
}
