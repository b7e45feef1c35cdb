package aggregate_test

import (
	"testing"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
)

func TestSubmit(t *testing.T) {
	claimAndAttempt := func(n int, after time.Duration) []events.Event {
		return history(claimed(k1), events.SendAttempted{
			Attempt: n, Deadline: events.At(start.Add(after + sendFor)), Token: string(w1.Withdrawal), Rail: railName,
		})
	}
	inFlight := func(state aggregate.State, since time.Duration) aggregate.Refusal {
		return aggregate.Refusal{Code: aggregate.CodeInFlight, Key: k1, Withdrawal: w1.Withdrawal, State: state, Since: start.Add(since)}
	}
	sendingUntil := inFlight(aggregate.StateSending, 0)
	sendingUntil.Until = start.Add(sendFor)
	heldBy2 := aggregate.Refusal{Code: aggregate.CodeWithdrawalClaimed, Key: k1, Withdrawal: w1.Withdrawal, Holder: k2, Since: start}

	for name, c := range map[string]struct {
		given    given
		after    time.Duration
		restated aggregate.Restated
		then     any
	}{
		"A1 the first submit reserves the key, then claims and attempts": {
			given: given{w1: history(w1)},
			then:  aggregate.Plan{Key: history(reserved(k1, w1, 1)), Withdrawal: claimAndAttempt(1, 0)},
		},
		"A2 after the outcome there is nothing to write": {
			given: given{w1: history(w1, claimed(k1), attempted(1), sent(k1, 1, "tx")), key: history(reserved(k1, w1, 1))},
			then:  aggregate.Plan{},
		},
		"A2 a person's outcome is replayed too": {
			given: given{w1: history(w1, claimed(k1), attempted(1), resolved(k1, "failed", "")), key: history(reserved(k1, w1, 1))},
			then:  aggregate.Plan{},
		},
		"A3 a key that is bound elsewhere is refused, and names the fields": {
			given: given{
				w1: history(w1), w2: history(w2, events.KeyClaimed{Key: k1, Fingerprint: fingerprint(w2)}),
				key: history(reserved(k1, w2, 1)),
			},
			then: aggregate.Refusal{Code: aggregate.CodeKeyReused, Key: k1, Withdrawal: w2.Withdrawal,
				Fields: []string{"withdrawal", "amount", "destination"}},
		},
		"A3 a key that is pending elsewhere belongs there": {
			given: given{w1: history(w1), w2: history(w2), key: history(reserved(k1, w2, 1))},
			then: aggregate.Refusal{Code: aggregate.CodeKeyReused, Key: k1, Withdrawal: w2.Withdrawal,
				Fields: []string{"withdrawal", "amount", "destination"}},
		},
		"A4 in flight, sending": {
			given: given{w1: history(w1, claimed(k1), attempted(1)), key: history(reserved(k1, w1, 1))},
			then:  sendingUntil,
		},
		"A4 in flight, unknown once the deadline is over": {
			given: given{w1: history(w1, claimed(k1), attempted(1)), key: history(reserved(k1, w1, 1))},
			after: sendFor,
			then:  inFlight(aggregate.StateUnknown, sendFor),
		},
		"A7 in flight, unknown after an attempt that ended without an answer": {
			given: given{w1: history(w1, claimed(k1), attempted(1), events.SendUnconfirmed{Attempt: 1, Cause: "timeout"}), key: history(reserved(k1, w1, 1))},
			then:  inFlight(aggregate.StateUnknown, 0),
		},
		"A8 in flight, refused": {
			given: given{w1: history(w1, claimed(k1), attempted(1), events.SendRefused{Attempt: 1, Reason: "no"}), key: history(reserved(k1, w1, 1))},
			then:  inFlight(aggregate.StateRefused, 0),
		},
		"A5 another key holds it in flight": {
			given: given{w1: history(w1, claimed(k2), attempted(1))},
			then:  heldBy2,
		},
		"A5 another key holds it with an outcome": {
			given: given{w1: history(w1, claimed(k2), attempted(1), sent(k2, 1, "tx"))},
			then:  heldBy2,
		},
		"A5 comes before A3": {
			given: given{w1: history(w1, claimed(k2)), w2: history(w2), key: history(reserved(k1, w2, 1))},
			then:  heldBy2,
		},
		"A6 a key that lost elsewhere is free again": {
			given: given{
				w1: history(w1), w2: history(w2, events.KeyClaimed{Key: k2, Fingerprint: fingerprint(w2)}),
				key: history(reserved(k1, w2, 1)),
			},
			then: aggregate.Plan{Key: history(reserved(k1, w1, 1)), Withdrawal: claimAndAttempt(1, 0)},
		},
		"A6 a reservation that was left behind at this revision is gone on with": {
			given: given{w1: history(w1), key: history(reserved(k1, w1, 1))},
			then:  aggregate.Plan{Withdrawal: claimAndAttempt(1, 0)},
		},
		"A6 a key that lost here is reserved anew, at today's revision": {
			given: given{w1: history(w1, claimed(k2), released(k2)), key: history(reserved(k1, w1, 1))},
			then:  aggregate.Plan{Key: history(reserved(k1, w1, 3)), Withdrawal: claimAndAttempt(1, 0)},
		},
		"A9 a claim without an attempt goes on to send": {
			given: given{w1: history(w1, claimed(k1)), key: history(reserved(k1, w1, 1))},
			then:  aggregate.Plan{Withdrawal: claimAndAttempt(1, 0)[1:]},
		},
		"A9 not while it is disputed": {
			given: given{
				w1:  history(w1, claimed(k2), attempted(1), released(k2), claimed(k1), late(k2, 1, events.ResultSent, "tx")),
				key: history(reserved(k1, w1, 4)),
			},
			then: aggregate.Refusal{Code: aggregate.CodeDisputed, Withdrawal: w1.Withdrawal, Key: k2, Since: start},
		},
		"A10 the key's stream was read before its own claim": {
			given: given{w1: history(w1, claimed(k1), attempted(1), sent(k1, 1, "tx"))},
			then:  aggregate.Plan{},
		},
		"A11 a withdrawal that was never requested": {
			then: aggregate.Refusal{Code: aggregate.CodeNotFound, Withdrawal: w1.Withdrawal},
		},
		"A15 restated details that differ": {
			given:    given{w1: history(w1, claimed(k2))},
			restated: aggregate.Restated{Amount: "11", Currency: "EUR", Destination: "elsewhere"},
			then:     aggregate.Refusal{Code: aggregate.CodeDetailsDiffer, Withdrawal: w1.Withdrawal, Fields: []string{"amount", "destination"}},
		},
		"A13 A15 restated in another spelling is the same amount": {
			given:    given{w1: history(w1)},
			restated: aggregate.Restated{Amount: "10.00", Currency: "EUR"},
			then:     aggregate.Plan{Key: history(reserved(k1, w1, 1)), Withdrawal: claimAndAttempt(1, 0)},
		},
		"B4 after a release whoever comes next is the holder, in a second attempt": {
			given: given{w1: history(w1, claimed(k2), attempted(1), released(k2))},
			after: time.Hour,
			then:  aggregate.Plan{Key: history(reserved(k1, w1, 4)), Withdrawal: claimAndAttempt(2, time.Hour)},
		},
		"B4 after a release the same key may come again": {
			given: given{w1: history(w1, claimed(k1), attempted(1), released(k1)), key: history(reserved(k1, w1, 1))},
			then:  aggregate.Plan{Key: history(reserved(k1, w1, 4)), Withdrawal: claimAndAttempt(2, 0)},
		},
		"B7 disputed: no new claim": {
			given: given{w1: history(w1, claimed(k2), attempted(1), released(k2), late(k2, 1, events.ResultSent, "tx"))},
			then:  aggregate.Refusal{Code: aggregate.CodeDisputed, Withdrawal: w1.Withdrawal, Key: k2, Since: start},
		},
		"B7 a late no after a release is no dispute": {
			given: given{w1: history(w1, claimed(k2), attempted(1), released(k2), late(k2, 1, events.ResultRefused, ""))},
			then:  aggregate.Plan{Key: history(reserved(k1, w1, 5)), Withdrawal: claimAndAttempt(2, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := start.Add(c.after)
			cmd := aggregate.SubmitCommand{Withdrawal: w1.Withdrawal, Restated: c.restated, Rail: railName, Deadline: now.Add(sendFor)}
			plan, err := aggregate.Submit(cmd, c.given.claimant(t, k1, w1.Withdrawal, now))
			then(t, plan, err, c.then)
		})
	}
}

// A14: another tenant's withdrawal looks as if it were not there, whatever its state.
func TestSubmitOfAnotherTenant(t *testing.T) {
	for name, g := range map[string]given{
		"unclaimed": {w1: history(w1)},
		"claimed":   {w1: history(w1, claimed(k2))},
		"resolved":  {w1: history(w1, claimed(k2), resolved(k2, "sent", "tx"))},
	} {
		c := g.claimant(t, k1, w1.Withdrawal, start)
		c.Tenant = "other"
		plan, err := aggregate.Submit(aggregate.SubmitCommand{Withdrawal: w1.Withdrawal, Rail: railName, Deadline: start,
			Restated: aggregate.Restated{Amount: "99"}}, c)
		t.Log(name)
		then(t, plan, err, aggregate.Refusal{Code: aggregate.CodeNotFound, Withdrawal: w1.Withdrawal})
	}
}

// D5: a withdrawal that its key has reserved and that is not there was lost, and is not one
// that was never requested.
func TestStandingOfALostWithdrawal(t *testing.T) {
	c := given{key: history(reserved(k1, w1, 1))}.claimant(t, k1, w1.Withdrawal, start)
	_, err := aggregate.Submit(aggregate.SubmitCommand{Withdrawal: w1.Withdrawal, Rail: railName, Deadline: start}, c)
	if damage, ok := err.(*events.Damage); !ok || damage.Kind != events.FaultTruncated {
		t.Errorf("got %v, want damage of kind %s", err, events.FaultTruncated)
	}
}

// A reservation beyond the withdrawal's end means that the log lost events (D5).
func TestStandingOfATruncatedWithdrawal(t *testing.T) {
	c := given{w1: history(w1), key: history(reserved(k1, w1, 2))}.claimant(t, k1, w1.Withdrawal, start)
	_, err := aggregate.Submit(aggregate.SubmitCommand{Withdrawal: w1.Withdrawal, Rail: railName, Deadline: start}, c)
	damage, ok := err.(*events.Damage)
	if !ok || damage.Kind != events.FaultTruncated {
		t.Fatalf("got %v, want damage of kind %s", err, events.FaultTruncated)
	}
}
