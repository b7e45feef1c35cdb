package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/submissions"
)

// historyDocument is the result of history: the events in order, as they are recorded.
type historyDocument struct {
	Withdrawal string `json:"withdrawal"`
	// AsOf is the moment that was asked about; State and the rest are what was true then.
	AsOf     string          `json:"as_of,omitempty"`
	State    string          `json:"state"`
	Since    string          `json:"since"`
	Holder   string          `json:"holder,omitempty"`
	Disputed bool            `json:"disputed"`
	Events   []eventDocument `json:"events"`
}

type eventDocument struct {
	Revision      uint64 `json:"revision"`
	ID            string `json:"id"`
	Type          string `json:"type"`
	Schema        int    `json:"schema"`
	RecordedAt    string `json:"recorded_at"`
	Actor         string `json:"actor"`
	CorrelationID string `json:"correlation_id,omitempty"`
	CausationID   string `json:"causation_id,omitempty"`
	Traceparent   string `json:"traceparent,omitempty"`
	Prev          string `json:"prev,omitempty"`
	Digest        string `json:"digest"`
	// Told is what the caller was told whose command it was.
	Told string          `json:"told,omitempty"`
	Data json.RawMessage `json:"data"`
}

func (c *call) history() command {
	withdrawal := text("withdrawal", "ID", "the withdrawal")
	key := text("key", "KEY", "the key that holds the withdrawal, in its place")
	asOf := text("as-of", "MOMENT", "only what was there then: a time such as 2026-12-01T09:30:00Z, or a position of the log")
	return command{
		name:  "history",
		usage: "print what happened to a withdrawal, event by event",
		description: []string{
			"Prints the events of a withdrawal in order: what happened, when, how long after the event before, and who did it. " +
				"Where the stream is damaged, the events before the damage are printed and the exit status is 7.",
			"With --as-of it shows the events that were there at that moment, and how things stood then. What the caller of each command " +
				"was told follows from the events; commands that were refused left none, so they do not show.",
		},
		examples: []string{"history --withdrawal wabcdefghijklmnopqrstuvwxyz234567", "history --key req-1 --as-of 2026-12-01T09:30:00Z --json"},
		options:  []*option{withdrawal, key, asOf},
		run: func(ctx context.Context) error {
			if (withdrawal.value == "") == (key.value == "") {
				return c.usage("say whose history: --withdrawal ID or --key KEY")
			}
			moment, err := momentOf(asOf.value)
			if err != nil {
				return c.usage("%w", err)
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
				recorded, status, err := ledger.HistoryAsOf(ctx, id, moment)
				if err != nil && recorded == nil {
					return err
				}
				if printing := c.printHistory(status, asOf.value, recorded); printing != nil {
					return printing
				}
				return err // what was printed is what there was before the damage
			})
		},
	}
}

// momentOf reads a time or a position.
func momentOf(s string) (m submissions.Moment, err error) {
	if s == "" {
		return m, nil
	}
	if p, err := strconv.ParseUint(s, 10, 64); err == nil {
		if p == 0 {
			return m, errors.New("--as-of 0 is before the first event; positions count from 1")
		}
		m.Position = eventlog.Position(p)
		return m, nil
	}
	if m.Time, err = time.Parse(time.RFC3339Nano, s); err != nil {
		return m, fmt.Errorf("--as-of %s is neither a time, such as 2026-12-01T09:30:00Z, nor a position", events.Quote(s))
	}
	return m, nil
}

func (c *call) printHistory(s submissions.Status, asOf string, recorded []events.Recorded) error {
	d := historyDocument{
		Withdrawal: string(s.ID), AsOf: asOf, State: string(s.State), Since: stamp(s.Since), Holder: string(s.Holder()), Disputed: s.Dispute != nil,
	}
	for _, r := range recorded {
		data, err := json.Marshal(r.Event)
		if err != nil {
			return fmt.Errorf("%s at revision %d cannot be printed: %w", r.Event.Type(), r.Revision, err)
		}
		m := r.Metadata
		d.Events = append(d.Events, eventDocument{
			Revision: r.Revision, ID: uuid.UUID(r.ID).String(), Type: r.Event.Type(), Schema: m.Schema,
			RecordedAt: m.RecordedAt.String(), Actor: m.Actor, CorrelationID: m.CorrelationID, CausationID: m.CausationID,
			Traceparent: m.Traceparent, Prev: m.Prev, Digest: m.Digest, Told: told(r.Event), Data: data,
		})
	}
	return c.result(d, func(p *page) {
		p.fact("Withdrawal", d.Withdrawal)
		if asOf != "" {
			p.fact("As of", legible(asOf))
			state := d.State
			if d.Disputed {
				state += ", and disputed"
			}
			p.fact("State then", state)
			p.fact("Since", d.Since)
			p.fact("Holder then", d.Holder)
		}
		p.line("")
		rows := make([][]string, len(recorded))
		var before time.Time
		for i, r := range recorded {
			at := r.Metadata.RecordedAt.Time()
			rows[i] = []string{
				fmt.Sprint(r.Revision), r.Metadata.RecordedAt.String(), delay(before, at),
				r.Event.Type(), legible(r.Metadata.Actor), details(r.Event), told(r.Event),
			}
			before = at
		}
		p.table([]string{"REV", "TIME", "DELAY", "EVENT", "ACTOR", "DETAILS", "ITS CALLER WAS TOLD"}, rows)
	})
}

// told is what the caller was told whose command made the event, as it follows from the
// event. A caller who had gone by then was told nothing.
func told(e events.Event) string {
	switch e := e.(type) {
	case events.WithdrawalRequested:
		return "the withdrawal's id"
	case events.SendRefused:
		return "in-flight: the rail refused, and nothing left"
	case events.SendUnconfirmed:
		return "outcome-unknown"
	case events.OutcomeResolved:
		return "the outcome: " + string(e.Result)
	case events.Released:
		return "released"
	case events.LateOutcomeReported:
		return "outcome-unknown, or disputed"
	}
	return "" // the send that follows says it
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
			"reason", e.Reason, "evidence", e.Evidence, "fee", e.Fee.String(), "at the rail", stamp(e.RailTime.Time()))
	case events.Released:
		return list("key", string(e.Key), "reason", e.Reason, "evidence", e.Evidence)
	case events.LateOutcomeReported:
		return list("attempt", fmt.Sprint(e.Attempt), "key", string(e.Key), "result", string(e.Result), "rail reference", e.Reference, "detail", e.Detail,
			"fee", e.Fee.String(), "at the rail", stamp(e.RailTime.Time()))
	}
	return ""
}
