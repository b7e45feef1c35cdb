package aggregate_test

import (
	"testing"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
)

func TestRelease(t *testing.T) {
	bound := history(reserved(k1, w1, 1))
	free := aggregate.Plan{Withdrawal: history(released(k1))}
	running := func(state aggregate.State, since time.Duration) aggregate.Refusal {
		return aggregate.Refusal{Code: aggregate.CodeAttemptRunning, Key: k1, Withdrawal: w1.Withdrawal, State: state,
			Since: start.Add(since), Until: start.Add(sendFor + margin)}
	}
	notFound := aggregate.Refusal{Code: aggregate.CodeNotFound, Key: k1}
	wasReleased := aggregate.Refusal{Code: aggregate.CodeNotFound, Key: k1, Withdrawal: w1.Withdrawal}

	for name, c := range map[string]struct {
		given given
		after time.Duration
		seen  uint64
		then  any
	}{
		"B4 nothing has happened since the person looked": {
			given: given{w1: history(w1, claimed(k1), attempted(1), events.SendUnconfirmed{Attempt: 1, Cause: "timeout"}), key: bound},
			seen:  4,
			then:  free,
		},
		"B4 the attempt ended after the person looked": {
			given: given{w1: history(w1, claimed(k1), attempted(1), events.SendUnconfirmed{Attempt: 1, Cause: "timeout"}), key: bound},
			seen:  3,
			then: aggregate.Refusal{Code: aggregate.CodeAttemptRunning, Key: k1, Withdrawal: w1.Withdrawal,
				State: aggregate.StateUnknown, Since: start},
		},
		"B4 a claim without an attempt is released at once": {
			given: given{w1: history(w1, claimed(k1)), key: bound},
			then:  free,
		},
		"B4 not while the attempt is sending": {
			given: given{w1: history(w1, claimed(k1), attempted(1)), key: bound},
			then:  running(aggregate.StateSending, 0),
		},
		"B4 not within the margin for clocks that disagree": {
			given: given{w1: history(w1, claimed(k1), attempted(1)), key: bound},
			after: sendFor + margin - time.Nanosecond,
			then:  running(aggregate.StateUnknown, sendFor),
		},
		"B4 once deadline and margin are over": {
			given: given{w1: history(w1, claimed(k1), attempted(1)), key: bound},
			after: sendFor + margin,
			then:  free,
		},
		"B4 at once when the attempt has reported that it does not know": {
			given: given{w1: history(w1, claimed(k1), attempted(1), events.SendUnconfirmed{Attempt: 1, Cause: "timeout"}), key: bound},
			then:  free,
		},
		"B4 at once after a clean refusal": {
			given: given{w1: history(w1, claimed(k1), attempted(1), events.SendRefused{Attempt: 1, Reason: "no"}), key: bound},
			then:  free,
		},
		"B4 never once there is an outcome": {
			given: given{w1: history(w1, claimed(k1), attempted(1), sent(k1, 1, "tx")), key: bound},
			after: 24 * time.Hour,
			then: aggregate.Refusal{Code: aggregate.CodeAlreadyResolved, Key: k1, Withdrawal: w1.Withdrawal,
				State: aggregate.StateSent, Since: start},
		},
		"B4 a late release never evicts a claim that has moved on": {
			given: given{w1: history(w1, claimed(k1), attempted(1), released(k1), claimed(k2), attempted(2)), key: bound},
			after: 24 * time.Hour,
			then:  wasReleased,
		},
		"B4 nor the same key's next claim on another withdrawal": {
			given: given{w1: history(w1, claimed(k1), released(k1)), w2: history(w2),
				key: history(reserved(k1, w1, 1), reserved(k1, w2, 1))},
			then: notFound,
		},
		"a key that was never used holds nothing":      {given: given{w1: history(w1)}, then: notFound},
		"a pending reservation is no claim to release": {given: given{w1: history(w1), key: bound}, then: notFound},
	} {
		t.Run(name, func(t *testing.T) {
			claimant := c.given.claimant(t, k1, "", start.Add(c.after))
			claimant.Withdrawal = claimant.Reserved
			plan, err := aggregate.Release(aggregate.ReleaseCommand{Reason: "looked", Evidence: "statement 7", Margin: margin, Seen: c.seen}, claimant)
			then(t, plan, err, c.then)
		})
	}
}

func TestReleaseCommandValidate(t *testing.T) {
	for name, c := range map[string]aggregate.ReleaseCommand{
		"B6 no reason":        {Evidence: "statement 7", Seen: 4},
		"B6 no evidence":      {Reason: "looked", Seen: 4},
		"B6 a tab":            {Reason: "loo\tked", Evidence: "statement 7", Seen: 4},
		"B4 nothing was seen": {Reason: "looked", Evidence: "statement 7"},
	} {
		if code, _ := aggregate.CodeOf(c.Validate(tenant, k1)); code != aggregate.CodeInvalidRequest {
			t.Errorf("%s: got %q, want %s", name, code, aggregate.CodeInvalidRequest)
		}
	}
}
