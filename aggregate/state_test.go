package aggregate_test

import (
	"testing"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
)

// at folds a stream whose events are a minute apart, the first of them at start.
func at(t *testing.T, history []events.Event) aggregate.Withdrawal {
	t.Helper()
	w := aggregate.Withdrawal{}
	for i, e := range history {
		r := recorded(w1.Withdrawal.Stream(), i, e)
		r.Metadata.RecordedAt = events.At(start.Add(time.Duration(i) * time.Minute))
		next, err := w.Apply(r)
		if err != nil {
			t.Fatal(err)
		}
		w = next
	}
	return w
}

// A4: everybody is told since when a withdrawal is in the state that it is in: since the
// event that brought it there, or the deadline, which is no event.
func TestStateAndSinceWhen(t *testing.T) {
	inFlight := history(w1, claimed(k1), attempted(1))
	for name, c := range map[string]struct {
		given []events.Event
		now   time.Duration
		state aggregate.State
		since time.Duration
	}{
		"requested":              {history(w1), time.Hour, aggregate.StateRequested, 0},
		"claimed":                {history(w1, claimed(k1)), time.Hour, aggregate.StateClaimed, time.Minute},
		"before the deadline":    {inFlight, sendFor - 1, aggregate.StateSending, 2 * time.Minute},
		"at the deadline":        {inFlight, sendFor, aggregate.StateUnknown, sendFor},
		"it has reported":        {append(inFlight[:3:3], events.SendUnconfirmed{Attempt: 1, Cause: "timeout"}), 0, aggregate.StateUnknown, 3 * time.Minute},
		"refused":                {append(inFlight[:3:3], events.SendRefused{Attempt: 1, Reason: "no"}), 0, aggregate.StateRefused, 3 * time.Minute},
		"sent":                   {append(inFlight[:3:3], sent(k1, 1, "tx")), 0, aggregate.StateSent, 3 * time.Minute},
		"failed":                 {append(inFlight[:3:3], resolved(k1, "failed", "")), 0, aggregate.StateFailed, 3 * time.Minute},
		"released":               {append(inFlight[:3:3], released(k1)), time.Hour, aggregate.StateRequested, 3 * time.Minute},
		"released a second time": {append(inFlight[:3:3], released(k1), claimed(k2), released(k2)), time.Hour, aggregate.StateRequested, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			state, since := at(t, c.given).State(start.Add(c.now))
			if state != c.state || !since.Equal(start.Add(c.since)) {
				t.Errorf("it is %s since %s, want %s since %s", state, since.Sub(start), c.state, c.since)
			}
		})
	}
}

// B7: the dispute is the first answer that contradicts the record. A later one is evidence
// beside it, and does not make the dispute younger.
func TestTheFirstDisputeIsKept(t *testing.T) {
	w := at(t, history(w1, claimed(k1), attempted(1), released(k1), late(k1, 1, "sent", "tx"), late(k1, 1, "sent", "tx2")))
	dispute, open := w.Dispute()
	if !open || dispute.Reference != "tx" || !dispute.Since.Equal(start.Add(4*time.Minute)) || len(w.LateAnswers()) != 2 {
		t.Errorf("the dispute is %+v, with %d late answers", dispute, len(w.LateAnswers()))
	}
}
