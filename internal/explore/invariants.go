package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast/aggregate"
	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// Check is asked at the end of each schedule that led to a new state; an error is a
// violation.
type Check func(*Ending) error

// Ending is a schedule that has come to its end.
type Ending struct {
	world *world
	// Log is the log as it is, and Withdrawals what is in it.
	Log         eventlog.Log
	Withdrawals []events.WithdrawalID
	// Told is what those processes were told that lived to hear it.
	Told []Told
	// Left has, for each withdrawal, the attempts in which money left: the rail's book.
	Left map[events.WithdrawalID][]int
	// Crashed says that some process was killed.
	Crashed bool
	// Later is a ledger on the log, long after everything.
	Later *submissions.Ledger
}

func (w *world) ending() *Ending {
	e := &Ending{world: w, Log: w.log, Withdrawals: w.ids, Left: w.left, Crashed: w.spent.Crashes > 0, Later: w.ledger(w.log, 1000*day)}
	for _, a := range w.actors {
		if !a.dead {
			e.Told = append(e.Told, a.told...)
		}
	}
	return e
}

// Invariants is what always holds of the real code. It is checked in this order; the last
// of them changes the log.
func Invariants(e *Ending) error {
	for _, check := range []Check{soundLog, oneSendAnAttempt, railAgrees, toldTheTruth, losersLeaveNoTrace, nothingIsStuck} {
		if err := check(e); err != nil {
			return err
		}
	}
	return nil
}

// soundLog: every stream is one that can be, no key is live on two withdrawals, no claim
// is unknown to its key, and no outcome has changed.
func soundLog(e *Ending) error {
	report, err := audit.Verify(context.Background(), e.Log, nil)
	if err == nil && !report.Clean() {
		err = fmt.Errorf("verify found %+v", report.Findings)
	}
	return err
}

// oneSendAnAttempt: money leaves at most once for an attempt, only for attempts that are
// in the log, and there is an attempt more than the first only after a release.
func oneSendAnAttempt(e *Ending) error {
	for i, id := range e.Withdrawals {
		w := e.count(id)
		left := slices.Clone(e.Left[id])
		slices.Sort(left)
		if len(slices.Compact(left)) != len(e.Left[id]) {
			return fmt.Errorf("double payment: W%d left twice in one attempt: %v", i, e.Left[id])
		}
		for _, attempt := range left {
			if attempt > w[events.SendAttempted{}.Type()] {
				return fmt.Errorf("withdrawal W%d left in attempt %d, which is not in the log", i, attempt)
			}
		}
		if releases := w[events.Released{}.Type()]; len(left) > 1+releases {
			return fmt.Errorf("double payment: W%d left %d times with %d releases", i, len(left), releases)
		}
	}
	return nil
}

// count returns how many events of each type a withdrawal's stream has.
func (e *Ending) count(id events.WithdrawalID) map[string]int {
	n := map[string]int{}
	for r, err := range e.Log.ReadStream(context.Background(), id.Stream(), 0) {
		if err != nil {
			panic(err)
		}
		n[r.Type]++
	}
	return n
}

// railAgrees: what the log says of the money is what the rail's book says, and money that
// left is never forgotten: the withdrawal is claimed, or has its outcome, or is disputed.
//
// There is an exception, outside of anybody's reach: an attempt that a person has taken
// for over, and that sends after its release. If it then dies, nobody can say so; if its
// call fails without an answer, that is on record as late evidence, and decides nothing.
func railAgrees(e *Ending) error {
	for i, id := range e.Withdrawals {
		s, err := e.Later.ClaimedBy(context.Background(), id)
		if err != nil {
			return err
		}
		n, left := e.count(id), len(e.Left[id])
		lateAfterRelease := n[events.Released{}.Type()] > 0 && (e.Crashed || n[events.LateOutcomeReported{}.Type()] > 0)
		switch {
		case s.Outcome != nil && s.Outcome.Source == events.SourceRail && left == 0:
			return fmt.Errorf("lost payment: W%d is recorded as sent by the rail, and nothing left", i)
		case left > 0 && s.State == aggregate.StateRequested && s.Dispute == nil && !lateAfterRelease:
			return fmt.Errorf("withdrawal W%d left, and the log knows nothing of it", i)
		}
	}
	return nil
}

// toldTheTruth: whoever was told an outcome was told the one in the log, byte for byte,
// and whoever was told a holder was told one that there was.
func toldTheTruth(e *Ending) error {
	for _, t := range e.Told {
		if t.Withdrawal == "" {
			continue
		}
		history, err := e.Later.History(context.Background(), t.Withdrawal)
		if err != nil {
			return err
		}
		if t.Err == nil {
			first := slices.IndexFunc(history, func(r events.Recorded) bool { _, ok := r.Event.(events.OutcomeResolved); return ok })
			if first < 0 {
				return fmt.Errorf("%s was told an outcome, and there is none", t.Key)
			}
			recorded := history[first].Event.(events.OutcomeResolved)
			if recorded.Key != t.Key || recorded.Reference != t.Outcome.Reference || !bytes.Equal(recorded.Response.Body, t.Outcome.Response.Body) {
				return fmt.Errorf("%s was told %q, and the outcome of %s is %q", t.Key, t.Outcome.Response.Body, recorded.Key, recorded.Response.Body)
			}
			continue
		}
		var r *submissions.Refusal
		if !errors.As(t.Err, &r) {
			return fmt.Errorf("%s was told %w, which is no refusal", t.Key, t.Err)
		}
		if r.Code == aggregate.CodeWithdrawalClaimed && !slices.ContainsFunc(history, func(h events.Recorded) bool {
			claim, ok := h.Event.(events.KeyClaimed)
			return ok && claim.Key == r.Holder
		}) {
			return fmt.Errorf("%s was told that %q holds the withdrawal, which it never did", t.Key, r.Holder)
		}
		if r.Code == aggregate.CodeDamaged {
			return fmt.Errorf("%s was told %w", t.Key, t.Err)
		}
	}
	return nil
}

// losersLeaveNoTrace: a key that was refused stands for nothing, unless another call
// under the same key went through.
func losersLeaveNoTrace(e *Ending) error {
	for _, t := range e.Told {
		code, refused := submissions.CodeOf(t.Err)
		if !refused || t.Withdrawal == "" || code != aggregate.CodeWithdrawalClaimed && code != aggregate.CodeKeyReused {
			continue
		}
		if s, err := e.Later.ClaimedBy(context.Background(), t.Withdrawal); err != nil || s.Holder() == t.Key && !e.sharesKey(t) {
			return fmt.Errorf("%s was refused, and holds the withdrawal: %v", t.Key, err)
		}
	}
	return nil
}

// sharesKey reports whether another call was made under the same key.
func (e *Ending) sharesKey(t Told) bool {
	n := 0
	for _, a := range e.world.scenario.Actors {
		if a.Name == "submit "+string(t.Key) || a.Name == "resolve "+string(t.Key) {
			n++
		}
	}
	return n > 1
}

// nothingIsStuck: wherever the schedule ended, some person's action leads to an outcome
// for every withdrawal, and every key that holds nothing is good for another withdrawal.
func nothingIsStuck(e *Ending) error {
	ctx := context.Background()
	send := func(_ context.Context, p rail.Payment) (rail.Receipt, error) {
		e.Left[p.Withdrawal] = append(e.Left[p.Withdrawal], p.Attempt)
		return rail.Receipt{Reference: reference(p.Withdrawal, len(e.Left[p.Withdrawal]))}, nil
	}
	for i, id := range e.Withdrawals {
		s, err := e.Later.ClaimedBy(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case s.State.InFlight() || s.Dispute != nil:
			key := s.Holder()
			if key == "" {
				key = events.RequestKey(fmt.Sprintf("person-%d", i))
			}
			r := resolution(id, len(e.Left[id]))
			r.Seen = s.Events
			if s.Outcome != nil { // a dispute about an outcome is closed by confirming it
				r.Result, r.Reference = s.Outcome.Result, s.Outcome.Reference
			}
			if _, err := e.Later.Resolve(ctx, key, r); err != nil {
				return fmt.Errorf("stuck: W%d is %s and cannot be resolved: %w", i, s.State, err)
			}
		case s.State == aggregate.StateRequested:
			if _, err := e.Later.Submit(ctx, events.RequestKey(fmt.Sprintf("next-%d", i)), id, send, nil); err != nil {
				return fmt.Errorf("stuck: nobody holds W%d, and it cannot be submitted: %w", i, err)
			}
		}
		s, err = e.Later.ClaimedBy(ctx, id)
		if err != nil || s.Outcome == nil || s.Dispute != nil {
			return fmt.Errorf("stuck: W%d is %s, %v", i, s.State, err)
		}
		if o, err := e.Later.Submit(ctx, s.Holder(), id, send, nil); err != nil || !o.Replayed {
			return fmt.Errorf("withdrawal W%d is not replayed: %w", i, err)
		}
	}
	for i, key := range e.keys() {
		if _, err := e.Later.Outcome(ctx, key); err == nil {
			continue
		}
		if _, err := e.Later.Submit(ctx, key, e.world.request(e.Later, 100+i), send, nil); err != nil {
			return fmt.Errorf("stuck: %s holds nothing, and is not good for another withdrawal: %w", key, err)
		}
	}
	return soundLog(e)
}

// keys are the keys that the scenario's calls were made under.
func (e *Ending) keys() []events.RequestKey {
	var keys []events.RequestKey
	for _, t := range e.Told {
		if !slices.Contains(keys, t.Key) {
			keys = append(keys, t.Key)
		}
	}
	return keys
}
