package aggregate_test

import (
	"testing"

	"holdfast/aggregate"
	"holdfast/events"
)

func TestResolve(t *testing.T) {
	bound := history(reserved(k1, w1, 1))
	already := func(state aggregate.State) aggregate.Refusal {
		return aggregate.Refusal{Code: aggregate.CodeAlreadyResolved, Key: k1, Withdrawal: w1.Withdrawal, State: state, Since: start}
	}
	paid := history(w1, claimed(k1), attempted(1), sent(k1, 1, "tx"))
	heldBy2 := aggregate.Refusal{Code: aggregate.CodeWithdrawalClaimed, Key: k1, Withdrawal: w1.Withdrawal, Holder: k2, Since: start}

	for name, c := range map[string]struct {
		given             given
		result, reference string
		restated          aggregate.Restated
		seen              uint64
		then              any
	}{
		"B1 the attempt ended after the person looked": {
			given:  given{w1: history(w1, claimed(k1), attempted(1), events.SendUnconfirmed{Attempt: 1, Cause: "timeout"}), key: bound},
			result: "failed", seen: 3,
			then: aggregate.Refusal{Code: aggregate.CodeAttemptRunning, Key: k1, Withdrawal: w1.Withdrawal,
				State: aggregate.StateUnknown, Since: start},
		},
		"B2 nothing has happened since the person looked": {
			given:  given{w1: history(w1)},
			result: "failed", seen: 1,
			then: aggregate.Plan{Key: history(reserved(k1, w1, 1)), Withdrawal: history(claimed(k1), resolved(k1, "failed", ""))},
		},
		"B2 it was claimed and released after the person looked": {
			given:  given{w1: history(w1, claimed(k2), released(k2))},
			result: "failed", seen: 1,
			then: aggregate.Refusal{Code: aggregate.CodeAttemptRunning, Key: k1, Withdrawal: w1.Withdrawal,
				State: aggregate.StateRequested, Since: start},
		},
		"B3 the outcome that was said is there already": {
			given:  given{w1: paid, key: bound},
			result: "sent", reference: "tx", seen: 3,
			then: aggregate.Plan{},
		},
		"B1 an unknown outcome is resolved as sent": {
			given:  given{w1: history(w1, claimed(k1), attempted(1)), key: bound},
			result: "sent", reference: "tx",
			then: aggregate.Plan{Withdrawal: history(resolved(k1, "sent", "tx"))},
		},
		"B1 a refused one is resolved as failed": {
			given:  given{w1: history(w1, claimed(k1), attempted(1), events.SendRefused{Attempt: 1, Reason: "no"}), key: bound},
			result: "failed",
			then:   aggregate.Plan{Withdrawal: history(resolved(k1, "failed", ""))},
		},
		"B1 the identity must match": {
			given:  given{w1: history(w1, claimed(k1), attempted(1)), key: bound},
			result: "sent", reference: "tx", restated: aggregate.Restated{Currency: "USD"},
			then: aggregate.Refusal{Code: aggregate.CodeDetailsDiffer, Withdrawal: w1.Withdrawal, Fields: []string{"currency"}},
		},
		"B2 an unknown key takes an unclaimed withdrawal with its outcome": {
			given:  given{w1: history(w1)},
			result: "sent", reference: "tx",
			then: aggregate.Plan{Key: history(reserved(k1, w1, 1)), Withdrawal: history(claimed(k1), resolved(k1, "sent", "tx"))},
		},
		"B2 a reservation that was left behind is gone on with": {
			given:  given{w1: history(w1), key: bound},
			result: "failed",
			then:   aggregate.Plan{Withdrawal: history(claimed(k1), resolved(k1, "failed", ""))},
		},
		"B2 nothing is stapled onto somebody else's claim": {
			given:  given{w1: history(w1, claimed(k2), attempted(1))},
			result: "sent", reference: "tx",
			then: heldBy2,
		},
		"B2 nor onto somebody else's outcome": {
			given:  given{w1: history(w1, claimed(k2), attempted(1), sent(k2, 1, "tx"))},
			result: "sent", reference: "tx",
			then: heldBy2,
		},
		"A3 a key that stands for another withdrawal": {
			given: given{w1: history(w1), w2: history(w2, events.KeyClaimed{Key: k1, Fingerprint: fingerprint(w2)}),
				key: history(reserved(k1, w2, 1))},
			result: "failed",
			then: aggregate.Refusal{Code: aggregate.CodeKeyReused, Key: k1, Withdrawal: w2.Withdrawal,
				Fields: []string{"withdrawal", "amount", "destination"}},
		},
		"B3 the same outcome again writes nothing": {
			given:  given{w1: paid, key: bound},
			result: "sent", reference: "tx",
			then: aggregate.Plan{},
		},
		"B3 another reference is a conflict": {
			given:  given{w1: paid, key: bound},
			result: "sent", reference: "tx2",
			then: already(aggregate.StateSent),
		},
		"B3 another result is a conflict": {
			given:  given{w1: paid, key: bound},
			result: "failed",
			then:   already(aggregate.StateSent),
		},
		"B7 a dispute without a holder is resolved with a claim": {
			given:  given{w1: history(w1, claimed(k1), attempted(1), released(k1), late(k1, 1, events.ResultSent, "tx")), key: bound},
			result: "sent", reference: "tx",
			then: aggregate.Plan{Key: history(reserved(k1, w1, 5)), Withdrawal: history(claimed(k1), resolved(k1, "sent", "tx"))},
		},
		"B7 a dispute about an outcome is closed by confirming it": {
			given: given{w1: history(w1, claimed(k1), attempted(1), resolved(k1, "failed", ""), late(k1, 1, events.ResultSent, "tx")),
				key: bound},
			result: "failed",
			then:   aggregate.Plan{Withdrawal: history(resolved(k1, "failed", ""))},
		},
		"B7 a dispute never changes the outcome": {
			given: given{w1: history(w1, claimed(k1), attempted(1), resolved(k1, "failed", ""), late(k1, 1, events.ResultSent, "tx")),
				key: bound},
			result: "sent", reference: "tx",
			then: already(aggregate.StateFailed),
		},
		"not-found": {
			result: "failed",
			then:   aggregate.Refusal{Code: aggregate.CodeNotFound, Withdrawal: w1.Withdrawal},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := aggregate.Resolve(aggregate.ResolveCommand{
				Withdrawal: w1.Withdrawal, Restated: c.restated, Result: events.Result(c.result), Reference: c.reference,
				Reason: "looked", Evidence: "statement 7", Seen: c.seen,
			}, c.given.claimant(t, k1, w1.Withdrawal, start))
			then(t, plan, err, c.then)
		})
	}
}

// FAULTS: resolving "sent" without a reference is refused. B6: nobody closes anything
// without a reason and evidence.
func TestResolveCommandValidate(t *testing.T) {
	sound := aggregate.ResolveCommand{
		Withdrawal: w1.Withdrawal, Result: events.ResultSent, Reference: "tx", Reason: "looked", Evidence: "statement 7",
	}
	if err := sound.Validate(tenant, k1); err != nil {
		t.Fatalf("a sound command was refused: %v", err)
	}
	for name, spoil := range map[string]func(*aggregate.ResolveCommand){
		"sent without a reference":  func(c *aggregate.ResolveCommand) { c.Reference = "" },
		"sent with a blank one":     func(c *aggregate.ResolveCommand) { c.Reference = " " },
		"failed with a reference":   func(c *aggregate.ResolveCommand) { c.Result, c.Seen = events.ResultFailed, 4 },
		"B4 failed, nothing seen":   func(c *aggregate.ResolveCommand) { c.Result, c.Reference = events.ResultFailed, "" },
		"neither sent nor failed":   func(c *aggregate.ResolveCommand) { c.Result = events.ResultUnknown },
		"no result":                 func(c *aggregate.ResolveCommand) { c.Result = "" },
		"B6 no reason":              func(c *aggregate.ResolveCommand) { c.Reason = "" },
		"B6 a blank reason":         func(c *aggregate.ResolveCommand) { c.Reason = "  " },
		"B6 no evidence":            func(c *aggregate.ResolveCommand) { c.Evidence = "" },
		"a withdrawal that is none": func(c *aggregate.ResolveCommand) { c.Withdrawal = "w1" },
		"A13 a malformed amount":    func(c *aggregate.ResolveCommand) { c.Restated.Amount = "1e1" },
	} {
		c := sound
		spoil(&c)
		if code, _ := aggregate.CodeOf(c.Validate(tenant, k1)); code != aggregate.CodeInvalidRequest {
			t.Errorf("%s: got %q, want %s", name, code, aggregate.CodeInvalidRequest)
		}
	}
	if code, _ := aggregate.CodeOf(sound.Validate(tenant, "K 1")); code != aggregate.CodeInvalidRequest {
		t.Errorf("a malformed key: got %q", code)
	}
}
