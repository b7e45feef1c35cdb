package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"holdfast/events"
	"holdfast/submissions"
)

// historyDocument is the result of history: the events in order, as they are recorded.
type historyDocument struct {
	Withdrawal string          `json:"withdrawal"`
	Events     []eventDocument `json:"events"`
}

type eventDocument struct {
	Revision      uint64          `json:"revision"`
	ID            string          `json:"id"`
	Type          string          `json:"type"`
	Schema        int             `json:"schema"`
	RecordedAt    string          `json:"recorded_at"`
	Actor         string          `json:"actor"`
	CorrelationID string          `json:"correlation_id,omitempty"`
	CausationID   string          `json:"causation_id,omitempty"`
	Traceparent   string          `json:"traceparent,omitempty"`
	Prev          string          `json:"prev,omitempty"`
	Digest        string          `json:"digest"`
	Data          json.RawMessage `json:"data"`
}

func (c *call) history() command {
	withdrawal := text("withdrawal", "ID", "the withdrawal")
	key := text("key", "KEY", "the key that holds the withdrawal, in its place")
	return command{
		name:  "history",
		usage: "print what happened to a withdrawal, event by event",
		description: []string{
			"Prints the events of a withdrawal in order: what happened, when, how long after the event before, and who did it. " +
				"Where the stream is damaged, the events before the damage are printed and the exit status is 7.",
		},
		examples: []string{"history --withdrawal wabcdefghijklmnopqrstuvwxyz234567", "history --key req-1 --json"},
		options:  []*option{withdrawal, key},
		run: func(ctx context.Context) error {
			if (withdrawal.value == "") == (key.value == "") {
				return c.usage("say whose history: --withdrawal ID or --key KEY")
			}
			return c.withLedger(ctx, reads, func(ledger *submissions.Ledger) error {
				id := events.WithdrawalID(withdrawal.value)
				if id == "" {
					status, err := ledger.Outcome(ctx, events.RequestKey(key.value))
					if err != nil {
						return err
					}
					id = status.ID
				}
				recorded, err := ledger.History(ctx, id)
				if err != nil && recorded == nil {
					return err
				}
				if printing := c.printHistory(id, recorded); printing != nil {
					return printing
				}
				return err // what was printed is what there was before the damage
			})
		},
	}
}

func (c *call) printHistory(id events.WithdrawalID, recorded []events.Recorded) error {
	d := historyDocument{Withdrawal: string(id)}
	for _, r := range recorded {
		data, err := json.Marshal(r.Event)
		if err != nil {
			return fmt.Errorf("%s at revision %d cannot be printed: %w", r.Event.Type(), r.Revision, err)
		}
		m := r.Metadata
		d.Events = append(d.Events, eventDocument{
			Revision: r.Revision, ID: uuid.UUID(r.ID).String(), Type: r.Event.Type(), Schema: m.Schema,
			RecordedAt: m.RecordedAt.String(), Actor: m.Actor, CorrelationID: m.CorrelationID, CausationID: m.CausationID,
			Traceparent: m.Traceparent, Prev: m.Prev, Digest: m.Digest, Data: data,
		})
	}
	return c.result(d, func(p *page) {
		p.fact("Withdrawal", d.Withdrawal)
		p.line("")
		rows := make([][]string, len(recorded))
		var before time.Time
		for i, r := range recorded {
			at := r.Metadata.RecordedAt.Time()
			rows[i] = []string{
				fmt.Sprint(r.Revision), r.Metadata.RecordedAt.String(), delay(before, at),
				r.Event.Type(), legible(r.Metadata.Actor), details(r.Event),
			}
			before = at
		}
		p.table([]string{"REV", "TIME", "DELAY", "EVENT", "ACTOR", "DETAILS"}, rows)
	})
}

// delay is how long an event came after the one before it. Clocks of several processes
// may disagree, so it may be negative.
func delay(before, at time.Time) string {
	if before.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%+.3fs", at.Sub(before).Seconds())
}

// details says in a line what an event holds.
func details(e events.Event) string {
	list := func(parts ...string) string {
		var said []string
		for i := 0; i+1 < len(parts); i += 2 {
			if parts[i+1] != "" {
				said = append(said, parts[i]+" "+legible(parts[i+1]))
			}
		}
		return strings.Join(said, ", ")
	}
	switch e := e.(type) {
	case events.WithdrawalRequested:
		return list("amount", e.Amount.String()+" "+e.Currency, "to", e.Destination, "account", e.Account, "reference", e.Reference)
	case events.KeyClaimed:
		return list("key", string(e.Key))
	case events.SendAttempted:
		return list("attempt", fmt.Sprint(e.Attempt), "rail", e.Rail, "deadline", e.Deadline.String())
	case events.SendRefused:
		return list("attempt", fmt.Sprint(e.Attempt), "reason", e.Reason)
	case events.SendUnconfirmed:
		return list("attempt", fmt.Sprint(e.Attempt), "cause", e.Cause)
	case events.OutcomeResolved:
		return list("result", string(e.Result), "rail reference", e.Reference, "key", string(e.Key), "on the word of a", string(e.Source),
			"reason", e.Reason, "evidence", e.Evidence)
	case events.Released:
		return list("key", string(e.Key), "reason", e.Reason, "evidence", e.Evidence)
	case events.LateOutcomeReported:
		return list("attempt", fmt.Sprint(e.Attempt), "key", string(e.Key), "result", string(e.Result), "rail reference", e.Reference, "detail", e.Detail)
	}
	return ""
}
