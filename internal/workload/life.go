package workload

import (
	"fmt"
	"slices"
	"time"

	"holdfast/eventlog"
	"holdfast/events"
)

// life is what one withdrawal still has to live through.
type life struct {
	number     int
	details    events.WithdrawalRequested
	withdrawal events.Chain
	keys       int // how many keys have claimed it
	key        events.RequestKey
	attempt    int
	steps      []step
}

// step is one thing that happens to a withdrawal, and what it writes.
type step int

const (
	requested step = iota
	submitted      // claimed, and the rail is called
	claimed        // claimed, and the process dies before the rail is called
	sent
	refused
	unconfirmed
	resolvedSent // by a person
	resolvedFailed
	released
	lateSent // contradicts what came before
)

// lives are the ways that withdrawals go, as often as they are to come.
var lives = slices.Concat(
	slices.Repeat([][]step{{requested, submitted, sent}}, 85),
	slices.Repeat([][]step{{requested, submitted, refused, released, submitted, sent}}, 3),
	slices.Repeat([][]step{{requested, submitted, unconfirmed, resolvedSent}}, 3),
	slices.Repeat([][]step{{requested, submitted, refused, resolvedFailed}}, 2),
	slices.Repeat([][]step{{requested, submitted, unconfirmed, released, submitted, sent}}, 2),
	[][]step{
		{requested}, {requested, claimed}, {requested, submitted}, {requested, submitted, unconfirmed},
		{requested, submitted, unconfirmed, released, lateSent},
	},
)

// step lives through the next step.
func (l *life) step(w *Workload) (appends []eventlog.StreamAppend) {
	next := l.steps[0]
	l.steps = l.steps[1:]
	meta := events.Metadata{RecordedAt: events.At(w.now), Actor: "api", CorrelationID: fmt.Sprintf("request-%d-%d", w.seed, w.events)}
	person := meta
	person.Actor = "olga@example.com"
	switch next {
	case requested:
		return l.append(w, meta, l.details)
	case submitted:
		reserved := l.reserve(w, meta)
		l.attempt++
		return append(reserved, l.append(w, meta, l.claim(), events.SendAttempted{
			Attempt: l.attempt, Deadline: events.At(w.now.Add(30 * time.Second)), Token: string(l.details.Withdrawal), Rail: "bank",
		})...)
	case claimed:
		reserved := l.reserve(w, meta)
		return append(reserved, l.append(w, meta, l.claim())...)
	case sent:
		return l.append(w, meta, l.outcome(meta, events.ResultSent, events.SourceRail))
	case refused:
		return l.append(w, meta, events.SendRefused{Attempt: l.attempt, Reason: "the account of the payee is closed"})
	case unconfirmed:
		return l.append(w, meta, events.SendUnconfirmed{Attempt: l.attempt, Cause: "no answer within 30 seconds"})
	case resolvedSent:
		return l.append(w, person, l.outcome(meta, events.ResultSent, events.SourcePerson))
	case resolvedFailed:
		return l.append(w, person, l.outcome(meta, events.ResultFailed, events.SourcePerson))
	case released:
		return l.append(w, person, events.Released{Key: l.key, Reason: "nothing was sent", Evidence: "the bank's statement of the day"})
	case lateSent:
		return l.append(w, meta, events.LateOutcomeReported{Key: l.key, Attempt: l.attempt, Result: events.ResultSent, Reference: l.reference(),
			Fee: l.details.Amount, RailTime: meta.RecordedAt})
	}
	panic("workload: an unknown step")
}

// reserve makes the next key reserve the withdrawal.
func (l *life) reserve(w *Workload, m events.Metadata) []eventlog.StreamAppend {
	l.keys++
	l.key = events.RequestKey(fmt.Sprintf("key-%d-%d-%d", w.seed, l.number, l.keys))
	chain := w.codec.Chain(l.key.Stream(l.details.Tenant))
	return stored(w, &chain, m, events.KeyReserved{
		Tenant: l.details.Tenant, Key: l.key, Withdrawal: l.details.Withdrawal, Fingerprint: l.fingerprint(), At: l.withdrawal.Next(),
	})
}

func (l *life) claim() events.KeyClaimed {
	return events.KeyClaimed{Key: l.key, Fingerprint: l.fingerprint()}
}

func (l *life) fingerprint() events.Fingerprint {
	d := &l.details
	return events.Identity{Withdrawal: d.Withdrawal, Amount: d.Amount, Currency: d.Currency, Destination: d.Destination}.Fingerprint()
}

func (l *life) reference() string { return fmt.Sprintf("tx-%d-%d", l.number, l.attempt) }

func (l *life) outcome(m events.Metadata, result events.Result, source events.Source) events.OutcomeResolved {
	e := events.OutcomeResolved{
		Key: l.key, Result: result, Source: source,
		Response: events.Response{MediaType: "application/json", Body: fmt.Appendf(nil, `{"status":%q,"reference":%q}`, result, l.reference())},
	}
	reference := ""
	if result == events.ResultSent {
		e.Reference = l.reference()
		reference = fmt.Sprintf(`,"reference":%q`, e.Reference)
	}
	if source == events.SourceRail {
		e.Attempt, e.Fee, e.RailTime = l.attempt, l.details.Amount, m.RecordedAt
	} else { // the response is then the ledger's own
		e.Response.Body = fmt.Appendf(nil, `{"withdrawal":%q,"key":%q,"result":%q%s}`, l.details.Withdrawal, l.key, result, reference)
		e.Reason, e.Evidence = "it is on the bank's statement", "statement of the day, line 12"
	}
	return e
}

func (l *life) append(w *Workload, m events.Metadata, happened ...events.Event) []eventlog.StreamAppend {
	return stored(w, &l.withdrawal, m, happened...)
}

// stored encodes what happened as the next events of a stream.
func stored(w *Workload, chain *events.Chain, m events.Metadata, happened ...events.Event) []eventlog.StreamAppend {
	a := eventlog.StreamAppend{Stream: chain.Stream(), At: chain.Next()}
	for _, e := range happened {
		s, _, err := chain.Append(w.id(), e, m)
		if err != nil {
			panic("workload: " + err.Error())
		}
		a.Events = append(a.Events, eventlog.Event{ID: s.ID, Type: s.Type, Data: s.Data, Metadata: s.Metadata})
	}
	return []eventlog.StreamAppend{a}
}
