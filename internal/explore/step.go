package explore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"

	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
)

// Choice is what the search lets happen at a step.
type Choice string

const (
	// Go lets the step happen.
	Go Choice = "goes through"
	// KilledBefore and KilledAfter kill the process around the step.
	KilledBefore Choice = "is killed before it"
	KilledAfter  Choice = "is killed after it"
	// LostDone and LostUndone lose the answer of an append that is, or is not, in the
	// log.
	LostDone   Choice = "is in the log, and its answer is lost"
	LostUndone Choice = "is not in the log, and its answer is lost"
	// Refused, FailedBefore and FailedAfter are ways in which a send ends without a
	// receipt: a clean no, and an error before or after the money left.
	Refused      Choice = "is refused by the rail"
	FailedBefore Choice = "fails before the money left"
	FailedAfter  Choice = "fails after the money left"
)

// The choices that each kind of step has.
var (
	readChoices   = []Choice{Go, KilledBefore}
	appendChoices = []Choice{Go, KilledBefore, KilledAfter, LostDone, LostUndone}
	sendChoices   = []Choice{Go, KilledBefore, KilledAfter, Refused, FailedBefore, FailedAfter}
)

// step is one call of the log or the rail that waits to be granted.
type step struct {
	actor   *actor
	label   string
	choices []Choice
	granted chan Choice
}

// actor is one process under way.
type actor struct {
	world *world
	index int
	name  string
	told  []Told
	// waiting is the step that the process wants to make, nil when it is not at one.
	waiting *step
	// dead and done say that it was killed, or has come to its end.
	dead, done bool
	// seen is everything that the process was answered: what it does next depends on
	// nothing else.
	seen strings.Builder
}

// want waits until the step is granted. A process that is dead goes no further.
func (a *actor) want(label string, choices []Choice) Choice {
	s := &step{actor: a, label: label, choices: choices, granted: make(chan Choice)}
	a.world.mu.Lock()
	dead := a.dead
	if !dead {
		a.waiting = s
	}
	a.world.mu.Unlock()
	if dead {
		runtime.Goexit()
	}
	choice := <-s.granted
	if choice == KilledBefore {
		a.die()
	}
	return choice
}

// die ends the goroutine, and every other of the process at its next step.
func (a *actor) die() {
	a.world.mu.Lock()
	a.dead = true
	a.world.mu.Unlock()
	runtime.Goexit()
}

func (a *actor) saw(format string, args ...any) {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	fmt.Fprintf(&a.seen, format+"\n", args...)
}

// stepLog is the log as one process has it: every call is a step.
type stepLog struct {
	eventlog.Log
	actor *actor
	apart bool
}

func (l *stepLog) Append(ctx context.Context, appends ...eventlog.StreamAppend) (at eventlog.Position, err error) {
	if !l.apart {
		return l.append(ctx, appends)
	}
	for i := range appends {
		if at, err = l.append(ctx, appends[i:i+1]); err != nil {
			return 0, err
		}
	}
	return at, nil
}

func (l *stepLog) append(ctx context.Context, appends []eventlog.StreamAppend) (eventlog.Position, error) {
	var what []string
	for _, a := range appends {
		for i, e := range a.Events {
			what = append(what, fmt.Sprintf("%s at %d of %s", e.Type, a.At+uint64(i), l.actor.world.nickname(a.Stream)))
		}
	}
	choice := l.actor.want("appends "+strings.Join(what, ", "), appendChoices)
	if choice == LostUndone {
		l.actor.saw("lost")
		return 0, eventlog.ErrUnknownResult
	}
	at, err := l.Log.Append(context.WithoutCancel(ctx), appends...)
	var conflict *eventlog.Conflict
	switch {
	case choice == KilledAfter:
		l.actor.die()
	case choice == LostDone:
		l.actor.saw("lost")
		return 0, eventlog.ErrUnknownResult
	case errors.As(err, &conflict):
		l.actor.saw("conflict %s", conflict.Stream)
	default:
		l.actor.saw("appended %v", err)
	}
	return at, err
}

func (l *stepLog) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	if stream == events.CustodyStream {
		return l.Log.ReadStream(ctx, stream, from) // no schedule copies the log: it is empty in all of them
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		l.actor.want(fmt.Sprintf("reads %s from %d", l.actor.world.nickname(stream), from), readChoices)
		n := from
		var all []eventlog.Recorded
		for r, err := range l.Log.ReadStream(context.WithoutCancel(ctx), stream, from) {
			if err != nil {
				l.actor.saw("error %v", err)
				yield(r, err)
				return
			}
			all = append(all, r)
			n++
		}
		// What is in a stream up to a revision never changes, so its length says all.
		l.actor.saw("%s has %d", stream, n)
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// errRail is how the rail fails.
var errRail = errors.New("the rail did not answer")

// send is the rail as one process has it: a call is a step, and the money leaves in it.
func (a *actor) send(_ context.Context, p rail.Payment) (rail.Receipt, error) {
	w := a.world
	choice := a.want(fmt.Sprintf("sends %s, attempt %d", w.nickname(p.Withdrawal.Stream()), p.Attempt), sendChoices)
	switch choice {
	case Refused:
		a.saw("refused")
		return rail.Receipt{}, &rail.Refusal{Reason: "no"}
	case FailedBefore:
		a.saw("failed")
		return rail.Receipt{}, errRail
	}
	w.mu.Lock()
	w.left[p.Withdrawal] = append(w.left[p.Withdrawal], p.Attempt)
	name := reference(p.Withdrawal, len(w.left[p.Withdrawal]))
	w.mu.Unlock()
	switch choice {
	case KilledAfter:
		a.die()
	case FailedAfter:
		a.saw("failed")
		return rail.Receipt{}, errRail
	}
	a.saw("sent %s", name)
	return rail.Receipt{Reference: name}, nil
}

// reference is the rail's reference for the nth payment of a withdrawal.
func reference(id events.WithdrawalID, n int) string { return fmt.Sprintf("tx-%s-%d", id[1:5], n) }
