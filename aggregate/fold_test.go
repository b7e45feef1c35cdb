package aggregate_test

import (
	"testing"

	"holdfast/aggregate"
	"holdfast/events"
)

// D5: events that are sound in themselves and can not follow each other are damage.
func TestImpossibleOrders(t *testing.T) {
	inFlight := history(w1, claimed(k1), attempted(1))
	paid := append(inFlight[:3:3], sent(k1, 1, "tx"))
	for name, c := range map[string]struct {
		given []events.Event
		event events.Event
	}{
		"a stream that starts with a claim":               {nil, claimed(k1)},
		"requested twice":                                 {history(w1), w1},
		"another withdrawal's request":                    {nil, w2},
		"claimed twice":                                   {history(w1, claimed(k1)), claimed(k2)},
		"claimed after the outcome":                       {paid, claimed(k2)},
		"claimed for other details":                       {history(w1), events.KeyClaimed{Key: k1, Fingerprint: fingerprint(w2)}},
		"an attempt without a claim":                      {history(w1), attempted(1)},
		"two attempts under a claim":                      {inFlight, attempted(2)},
		"an attempt after the outcome":                    {paid, attempted(2)},
		"an attempt out of number":                        {history(w1, claimed(k1)), attempted(2)},
		"a refusal of no attempt":                         {history(w1, claimed(k1)), events.SendRefused{Attempt: 1, Reason: "no"}},
		"a refusal after the outcome":                     {paid, events.SendRefused{Attempt: 1, Reason: "no"}},
		"silence about another attempt":                   {inFlight, events.SendUnconfirmed{Attempt: 2, Cause: "timeout"}},
		"an outcome without a claim":                      {history(w1), sent(k1, 1, "tx")},
		"an outcome for another key":                      {inFlight, sent(k2, 1, "tx")},
		"a second outcome":                                {paid, resolved(k1, "failed", "")},
		"the same outcome again without a dispute":        {paid, resolved(k1, "sent", "tx")},
		"another outcome in a dispute":                    {append(paid[:4:4], late(k1, 1, "sent", "tx2")), resolved(k1, "sent", "tx2")},
		"a rail's word to close a dispute":                {append(paid[:4:4], late(k1, 1, "sent", "tx2")), sent(k1, 1, "tx")},
		"a release of nothing":                            {history(w1), released(k1)},
		"a release by another key":                        {inFlight, released(k2)},
		"a release after the outcome":                     {paid, released(k1)},
		"a late answer of an attempt that was never made": {inFlight, late(k1, 2, "sent", "tx")},
		"a key's event in a withdrawal's stream":          {history(w1), reserved(k1, w1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			stream := w1.Withdrawal.Stream()
			before := foldAll(t, aggregate.Withdrawal{}, stream, c.given)
			after, err := before.Apply(recorded(stream, len(c.given), c.event))
			if err == nil {
				t.Errorf("%s was folded", c.event.Type())
			}
			if after.Next() != before.Next() {
				t.Error("an event that can not be moved the state on")
			}
		})
	}
	if _, err := (aggregate.RequestKey{}).Apply(recorded(k1.Stream(tenant), 0, w1)); err == nil {
		t.Error("a withdrawal's event in a key's stream was folded")
	}
	if _, err := (aggregate.RequestKey{}).Apply(recorded(k2.Stream(tenant), 0, reserved(k1, w1, 1))); err == nil {
		t.Error("a reservation of another key was folded")
	}
}
