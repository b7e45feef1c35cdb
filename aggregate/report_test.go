package aggregate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/aggregate"
	"holdfast/events"
)

func TestReport(t *testing.T) {
	inFlight := history(w1, claimed(k1), attempted(1))
	fee, err := events.ParseAmount("0.35")
	if err != nil {
		t.Fatal(err)
	}
	railTime := events.At(time.UnixMicro(1))
	receipt := aggregate.Answer{Result: events.ResultSent, Reference: "tx", Fee: fee, RailTime: railTime,
		Response: events.Response{MediaType: "text/plain", Body: []byte("done")}}
	outcome := sent(k1, 1, "tx")
	outcome.Fee, outcome.RailTime = fee, railTime
	no := aggregate.Answer{Result: events.ResultRefused, Detail: "account closed"}
	silence := aggregate.Answer{Result: events.ResultUnknown, Detail: "timeout"}
	lateReceipt := events.LateOutcomeReported{Key: k1, Attempt: 1, Result: events.ResultSent, Reference: "tx", Response: &receipt.Response, Fee: fee, RailTime: railTime}

	for name, c := range map[string]struct {
		stream   []events.Event
		answer   aggregate.Answer
		then     events.Event
		disputed bool
	}{
		"A1 sent is the outcome":            {stream: inFlight, answer: receipt, then: outcome},
		"A8 a clean no is recorded as that": {stream: inFlight, answer: no, then: events.SendRefused{Attempt: 1, Reason: "account closed"}},
		"A7 anything else is unknown":       {stream: inFlight, answer: silence, then: events.SendUnconfirmed{Attempt: 1, Cause: "timeout"}},
		"B7 sent after a release is a dispute": {
			stream: append(inFlight[:3:3], released(k1)), answer: receipt, then: lateReceipt, disputed: true,
		},
		"B7 sent after a release, while another key is at it, is a dispute": {
			stream: append(inFlight[:3:3], released(k1), claimed(k2), attempted(2)), answer: receipt, then: lateReceipt, disputed: true,
		},
		"B7 the same key's next attempt is not the one that answers": {
			stream: append(inFlight[:3:3], released(k1), claimed(k1), attempted(2)), answer: receipt, then: lateReceipt, disputed: true,
		},
		"B7 sent after it was resolved as failed is a dispute": {
			stream: append(inFlight[:3:3], resolved(k1, "failed", "")), answer: receipt, then: lateReceipt, disputed: true,
		},
		"B7 sent under another reference than resolved is a dispute": {
			stream: append(inFlight[:3:3], resolved(k1, "sent", "tx0")), answer: receipt, then: lateReceipt, disputed: true,
		},
		"B7 sent as it was resolved is evidence": {
			stream: append(inFlight[:3:3], resolved(k1, "sent", "tx")), answer: receipt, then: lateReceipt,
		},
		"B7 refused after it was resolved as sent is a dispute": {
			stream: append(inFlight[:3:3], resolved(k1, "sent", "tx")), answer: no, disputed: true,
			then: events.LateOutcomeReported{Key: k1, Attempt: 1, Result: events.ResultRefused, Detail: "account closed"},
		},
		"B7 refused after it was resolved as failed is evidence": {
			stream: append(inFlight[:3:3], resolved(k1, "failed", "")), answer: no,
			then: events.LateOutcomeReported{Key: k1, Attempt: 1, Result: events.ResultRefused, Detail: "account closed"},
		},
		"B7 a refused attempt says nothing about another one's outcome": {
			stream: append(inFlight[:3:3], released(k1), claimed(k2), attempted(2), sent(k2, 2, "tx2")), answer: no,
			then: events.LateOutcomeReported{Key: k1, Attempt: 1, Result: events.ResultRefused, Detail: "account closed"},
		},
		"B7 silence contradicts nothing": {
			stream: append(inFlight[:3:3], resolved(k1, "sent", "tx")), answer: silence,
			then: events.LateOutcomeReported{Key: k1, Attempt: 1, Result: events.ResultUnknown, Detail: "timeout"},
		},
		"B7 a second answer of an attempt that was refused is a dispute": {
			stream: append(inFlight[:3:3], events.SendRefused{Attempt: 1, Reason: "no"}), answer: receipt, then: lateReceipt, disputed: true,
		},
		"B7 an answer after silence is evidence for whoever resolves it": {
			stream: append(inFlight[:3:3], events.SendUnconfirmed{Attempt: 1, Cause: "timeout"}), answer: receipt, then: lateReceipt,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stream := w1.Withdrawal.Stream()
			w := foldAll(t, aggregate.Withdrawal{}, stream, c.stream)
			got := aggregate.Report(w, k1, 1, c.answer)
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			after, err := w.Apply(recorded(stream, len(c.stream), got))
			if err != nil {
				t.Fatalf("the report cannot be folded: %v", err)
			}
			if _, disputed := after.Dispute(); disputed != c.disputed {
				t.Errorf("disputed is %v, want %v", disputed, c.disputed)
			}
		})
	}
}

// A receipt without a response still has bytes to replay, and they are always the same.
func TestReportComposesAResponse(t *testing.T) {
	w := foldAll(t, aggregate.Withdrawal{}, w1.Withdrawal.Stream(), history(w1, claimed(k1), attempted(1)))
	got := aggregate.Report(w, k1, 1, aggregate.Answer{Result: events.ResultSent, Reference: "tx"}).(events.OutcomeResolved)
	if want := resolved(k1, "sent", "tx").Response; !cmp.Equal(want, got.Response) {
		t.Errorf("got %s, want %s", got.Response.Body, want.Body)
	}
}

// B5: time alone moves no claim and decides no outcome, however much of it passes and
// whichever way.
func TestTimeDecidesNothing(t *testing.T) {
	stream := w1.Withdrawal.Stream()
	w := foldAll(t, aggregate.Withdrawal{}, stream, history(w1, claimed(k1), attempted(1)))
	for _, after := range []time.Duration{-100 * 365 * 24 * time.Hour, -1, 0, 1, sendFor, 100 * 365 * 24 * time.Hour} {
		state, _ := w.State(start.Add(after))
		if !state.InFlight() {
			t.Errorf("after %s the state is %s", after, state)
		}
		if c, ok := w.Claim(); !ok || c.Key != k1 {
			t.Errorf("after %s the claim is gone", after)
		}
	}
}
