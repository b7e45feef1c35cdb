package aggregate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/aggregate"
	"holdfast/events"
)

// The withdrawals, keys and times that the tests of decisions are about.
var (
	start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

	w1 = requested("order-1", "10")
	w2 = requested("order-2", "25.5")

	k1, k2 events.RequestKey = "req-1", "req-2"
)

const (
	tenant   = events.DefaultTenant
	sendFor  = 30 * time.Second
	margin   = time.Minute
	railName = "bank"
)

func requested(reference, amount string) events.WithdrawalRequested {
	e, err := aggregate.RequestCommand{
		Tenant: tenant, Account: "alice", Reference: reference, Amount: amount, Currency: "EUR", Destination: "DE-" + reference,
	}.Event()
	if err != nil {
		panic(err)
	}
	return e
}

func fingerprint(e events.WithdrawalRequested) events.Fingerprint {
	return events.Identity{Withdrawal: e.Withdrawal, Amount: e.Amount, Currency: e.Currency, Destination: e.Destination}.Fingerprint()
}

func claimed(k events.RequestKey) events.Event {
	return events.KeyClaimed{Key: k, Fingerprint: fingerprint(w1)}
}

func attempted(n int) events.Event {
	return events.SendAttempted{
		Attempt: n, Deadline: events.At(start.Add(sendFor)), Token: string(w1.Withdrawal), Rail: railName,
	}
}

func sent(k events.RequestKey, attempt int, reference string) events.OutcomeResolved {
	return events.OutcomeResolved{
		Key: k, Result: events.ResultSent, Reference: reference, Source: events.SourceRail, Attempt: attempt,
		Response: events.Response{MediaType: "text/plain", Body: []byte("done")},
	}
}

func resolved(k events.RequestKey, result events.Result, reference string) events.OutcomeResolved {
	body := `{"withdrawal":"` + string(w1.Withdrawal) + `","key":"` + string(k) + `","result":"` + string(result) + `"`
	if reference != "" {
		body += `,"reference":"` + reference + `"`
	}
	return events.OutcomeResolved{
		Key: k, Result: result, Reference: reference, Source: events.SourcePerson, Reason: "looked", Evidence: "statement 7",
		Response: events.Response{MediaType: "application/json", Body: []byte(body + "}")},
	}
}

func released(k events.RequestKey) events.Event {
	return events.Released{Key: k, Reason: "looked", Evidence: "statement 7"}
}

func reserved(k events.RequestKey, w events.WithdrawalRequested, at uint64) events.KeyReserved {
	return events.KeyReserved{Tenant: tenant, Key: k, Withdrawal: w.Withdrawal, Fingerprint: fingerprint(w), At: at}
}

func late(k events.RequestKey, attempt int, result events.Result, reference string) events.Event {
	return events.LateOutcomeReported{Key: k, Attempt: attempt, Result: result, Reference: reference}
}

// given is what the streams hold when a decision is made.
type given struct {
	w1, w2 []events.Event // the streams of the two withdrawals
	key    []events.Event // the stream of the key that the command is for
}

// history is a stream's events.
func history(e ...events.Event) []events.Event { return e }

// claimant folds what is given into what a decision is made from.
func (g given) claimant(t *testing.T, k events.RequestKey, on events.WithdrawalID, now time.Time) aggregate.Claimant {
	t.Helper()
	withdrawals := map[events.WithdrawalID]aggregate.Withdrawal{
		w1.Withdrawal: foldAll(t, aggregate.Withdrawal{}, w1.Withdrawal.Stream(), g.w1),
		w2.Withdrawal: foldAll(t, aggregate.Withdrawal{}, w2.Withdrawal.Stream(), g.w2),
	}
	key := foldAll(t, aggregate.RequestKey{}, k.Stream(tenant), g.key)
	reserved, _ := key.Reserved()
	return aggregate.Claimant{
		Tenant: tenant, Key: k, Now: now, KeyState: key, Withdrawal: withdrawals[on], Reserved: withdrawals[reserved],
	}
}

func foldAll[S interface {
	Apply(events.Recorded) (S, error)
}](t *testing.T, state S, stream string, history []events.Event) S {
	t.Helper()
	for i, e := range history {
		next, err := state.Apply(recorded(stream, i, e))
		if err != nil {
			t.Fatalf("given %s as revision %d: %v", e.Type(), i, err)
		}
		state = next
	}
	return state
}

func recorded(stream string, revision int, e events.Event) events.Recorded {
	return events.Recorded{
		Stream: stream, Revision: uint64(revision), Event: e,
		Metadata: events.Metadata{Schema: 1, RecordedAt: events.At(start), Actor: "test"},
	}
}

// then checks what was decided: the events of a plan, or a refusal.
func then(t *testing.T, plan aggregate.Plan, err error, want any) {
	t.Helper()
	switch want := want.(type) {
	case aggregate.Plan:
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		if diff := cmp.Diff(want, plan, cmp.AllowUnexported(events.Amount{}), cmp.Comparer(func(a, b events.Timestamp) bool { return a == b })); diff != "" {
			t.Errorf("plan (-want +got):\n%s", diff)
		}
	case aggregate.Refusal:
		if !plan.Empty() {
			t.Errorf("a refusal must write nothing, and it planned %v", plan)
		}
		got, ok := err.(*aggregate.Refusal)
		if !ok {
			t.Fatalf("got %v, want a refusal with code %s", err, want.Code)
		}
		facts := *got
		facts.Message = "" // for people; the facts are what programs act on
		if diff := cmp.Diff(want, facts); diff != "" {
			t.Errorf("refusal (-want +got):\n%s", diff)
		}
	}
}
