package submissions_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// D2: what there was at a moment, and how things stood then, by time and by position.
func TestD2HistoryAsOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		began := time.Now()
		id := f.request(t, "order-1") // position 1, at 0 s
		time.Sleep(10 * time.Second)
		_, err := f.Submit(t.Context(), "req-1", id, func(context.Context, rail.Payment) (rail.Receipt, error) {
			time.Sleep(5 * time.Second)
			return rail.Receipt{}, errors.New("no answer")
		}, &submissions.SubmitOptions{Timeout: 8 * time.Second}) // positions 2 to 4 at 10 s, 5 at 15 s
		refused(t, err, submissions.CodeOutcomeUnknown)
		time.Sleep(85 * time.Second)
		if _, err := f.Resolve(t.Context(), "req-1", submissions.Resolution{By: ann, Result: events.ResultSent, Reference: "tx-1", Reason: "r", Evidence: "e"}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name   string
			moment submissions.Moment
			events int
			state  aggregate.State
		}{
			{"now", submissions.Moment{}, 5, aggregate.StateSent},
			{"before the submit", submissions.Moment{Time: began.Add(9 * time.Second)}, 1, aggregate.StateRequested},
			{"while it was sending", submissions.Moment{Time: began.Add(12 * time.Second)}, 3, aggregate.StateSending},
			{"once it was unknown", submissions.Moment{Time: began.Add(16 * time.Second)}, 4, aggregate.StateUnknown},
			{"at the resolving", submissions.Moment{Time: began.Add(100 * time.Second)}, 5, aggregate.StateSent},
			{"position 1", submissions.Moment{Position: 1}, 1, aggregate.StateRequested},
			{"position 4", submissions.Moment{Position: 4}, 3, aggregate.StateSending},
			{"position 6", submissions.Moment{Position: 6}, 5, aggregate.StateSent},
		} {
			history, status, err := f.HistoryAsOf(t.Context(), id, c.moment)
			if err != nil || len(history) != c.events || status.State != c.state || status.Events != uint64(c.events) {
				t.Errorf("%s: %d events, %s, %v; want %d, %s", c.name, len(history), status.State, err, c.events, c.state)
			}
		}
		_, _, err = f.HistoryAsOf(t.Context(), id, submissions.Moment{Time: began.Add(-time.Second)})
		refused(t, err, submissions.CodeNotFound)
	})
}
