package explore

import (
	"context"

	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// Scenario is what a search walks through.
type Scenario struct {
	Name string
	// Withdrawals is how many are requested before the actors start.
	Withdrawals int
	// Remembered says that each actor's process has itself requested the withdrawals,
	// and remembers them, before the actors start.
	Remembered bool
	// Apart says that the engine commits several stream appends one after another, as
	// a cluster does, each of them a step.
	Apart bool
	// Actors are the processes.
	Actors []Actor
	// Budget is how much may go wrong in one schedule.
	Budget Budget
}

// Budget is how many faults of each kind one schedule may have.
type Budget struct {
	// Crashes is how many processes may be killed, Lost how many appends may lose
	// their answer, and Rail how many sends may end otherwise than with a receipt.
	Crashes, Lost, Rail int
}

// Actor is one process: what it calls, in order.
type Actor struct {
	Name string
	Do   func(ctx context.Context, p *Process)
}

// Process is what an actor has to work with.
type Process struct {
	// Log is the log, step by step, and Ledger a ledger on it.
	Log    eventlog.Log
	Ledger *submissions.Ledger
	// Withdrawals are the ids of what was requested.
	Withdrawals []events.WithdrawalID
	// Send is the rail, step by step.
	Send rail.Sender
	// Sent reports how often money has left for a withdrawal: the rail's own book.
	Sent func(events.WithdrawalID) int

	actor *actor
}

// Told is what an actor was told about one submission or resolution.
type Told struct {
	Key        events.RequestKey
	Withdrawal events.WithdrawalID
	Outcome    submissions.Outcome
	Err        error
}

// Tell keeps what the actor was told, for the invariants.
func (p *Process) Tell(t Told) { p.actor.told = append(p.actor.told, t) }

// Submit returns an actor that submits a withdrawal under a key, so many times.
func Submit(key events.RequestKey, withdrawal, times int) Actor {
	return Actor{Name: "submit " + string(key), Do: func(ctx context.Context, p *Process) {
		id := p.Withdrawals[withdrawal]
		for range times {
			outcome, err := p.Ledger.Submit(ctx, key, id, p.Send, nil)
			p.Tell(Told{key, id, outcome, err})
		}
	}}
}

// Release returns an actor that looks at a key and at the rail's book and, when nothing
// has left, releases the key, as an honest operator does.
func Release(key events.RequestKey, withdrawal int) Actor {
	return Actor{Name: "release " + string(key), Do: func(ctx context.Context, p *Process) {
		s, err := p.Ledger.Outcome(ctx, key)
		if err != nil || p.Sent(p.Withdrawals[withdrawal]) > 0 {
			return
		}
		_, err = p.Ledger.Release(ctx, key, submissions.Release{By: operator, Reason: "looked", Evidence: "the rail's book", Seen: s.Events})
		p.Tell(Told{Key: key, Err: err})
	}}
}

// Resolve returns an actor that looks at a withdrawal and at the rail's book, and
// resolves it under a key as the book says, as an honest operator does.
func Resolve(key events.RequestKey, withdrawal int) Actor {
	return Actor{Name: "resolve " + string(key), Do: func(ctx context.Context, p *Process) {
		id := p.Withdrawals[withdrawal]
		s, err := p.Ledger.ClaimedBy(ctx, id)
		if err != nil {
			return
		}
		r := resolution(id, p.Sent(id))
		r.Seen = s.Events
		outcome, err := p.Ledger.Resolve(ctx, key, r)
		p.Tell(Told{key, id, outcome, err})
	}}
}

var operator = submissions.By{Actor: "operator"}

func resolution(id events.WithdrawalID, left int) submissions.Resolution {
	r := submissions.Resolution{By: operator, Withdrawal: id, Result: events.ResultFailed, Reason: "looked", Evidence: "the rail's book"}
	if left > 0 {
		r.Result, r.Reference = events.ResultSent, reference(id, left)
	}
	return r
}
