package aggregate

import "time"

// State is how far a withdrawal has got. Claimed, sending, unknown and refused are the
// sub-states of in flight: claimed, and no outcome.
type State string

const (
	// StateRequested: nobody holds it; any key may submit it.
	StateRequested State = "requested"
	// StateClaimed: held, and no attempt recorded: provably nothing was sent.
	StateClaimed State = "claimed"
	// StateSending: the attempt is within its deadline and has not reported.
	StateSending State = "sending"
	// StateUnknown: the attempt is over, and nobody knows whether the money left.
	StateUnknown State = "unknown"
	// StateRefused: the rail refused cleanly; nothing left.
	StateRefused State = "refused"
	// StateSent: the outcome is that the money left.
	StateSent State = "sent"
	// StateFailed: the outcome is that nothing left and that it is given up.
	StateFailed State = "failed"
)

// InFlight reports whether the state is one of claimed without an outcome.
func (s State) InFlight() bool {
	return s == StateClaimed || s == StateSending || s == StateUnknown || s == StateRefused
}

// State returns how far the withdrawal has got, and since when. Time alone only ever
// turns sending into unknown: it moves no claim and decides no outcome (B5).
func (w Withdrawal) State(now time.Time) (State, time.Time) {
	switch {
	case w.outcome != nil:
		return State(w.outcome.Result), w.outcome.ResolvedAt
	case w.claim == nil:
		since := w.since
		if n := len(w.past); n > 0 {
			since = w.past[n-1].ReleasedAt
		}
		return StateRequested, since
	}
	return w.claim.State(now)
}

// State returns how far a live claim without an outcome has got, and since when.
func (c Claim) State(now time.Time) (State, time.Time) {
	a := c.Attempt
	switch {
	case a == nil:
		return StateClaimed, c.Since
	case a.Reported != "":
		return State(a.Reported), a.Ended
	case now.Before(a.Deadline):
		return StateSending, a.Started
	}
	return StateUnknown, a.Deadline
}

// RunningUntil returns until when the claim's attempt must be taken for running, and
// false when it is over: there is none, it has reported, or its deadline and the margin
// for clocks that disagree have passed (B4).
func (c Claim) RunningUntil(now time.Time, margin time.Duration) (time.Time, bool) {
	if c.Attempt == nil || c.Attempt.Reported != "" {
		return time.Time{}, false
	}
	until := c.Attempt.Deadline.Add(max(margin, 0))
	if !now.Before(until) {
		return time.Time{}, false
	}
	return until, true
}
