package aggregate_test

import (
	"testing"

	"holdfast/aggregate"
	"holdfast/events"
)

func TestRequest(t *testing.T) {
	other := w1
	other.Currency = "USD"
	for name, c := range map[string]struct {
		given []events.Event
		when  events.WithdrawalRequested
		then  any
	}{
		"A11 the first request records it":  {nil, w1, aggregate.Plan{Withdrawal: history(w1)}},
		"A11 the same again writes nothing": {history(w1, claimed(k1)), w1, aggregate.Plan{}},
		"A11 other details are a conflict": {history(w1), other, aggregate.Refusal{
			Code: aggregate.CodeReferenceReused, Withdrawal: w1.Withdrawal, Fields: []string{"currency"}}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := aggregate.Request(c.when, foldAll(t, aggregate.Withdrawal{}, w1.Withdrawal.Stream(), c.given))
			then(t, plan, err, c.then)
		})
	}
}

// A11: the id stands for tenant, account and reference, and for nothing else. A13: 10 and
// 10.00 are one amount.
func TestRequestCommandEvent(t *testing.T) {
	first := aggregate.RequestCommand{
		Tenant: tenant, Account: "alice", Reference: "r", Amount: "10", Currency: "EUR", Destination: "here",
	}
	id := func(c aggregate.RequestCommand) events.WithdrawalID {
		e, err := c.Event()
		if err != nil {
			t.Fatal(err)
		}
		return e.Withdrawal
	}
	same := first
	same.Amount, same.Destination = "10.00", "there"
	if id(first) != id(same) {
		t.Error("other details under the same reference got another id")
	}
	for _, change := range []func(*aggregate.RequestCommand){
		func(c *aggregate.RequestCommand) { c.Tenant = "other" },
		func(c *aggregate.RequestCommand) { c.Account = "bob" },
		func(c *aggregate.RequestCommand) { c.Reference = "R" },
		func(c *aggregate.RequestCommand) { c.Account, c.Reference = "alic", "er" },
	} {
		c := first
		change(&c)
		if id(first) == id(c) {
			t.Errorf("%+v got the id of %+v", c, first)
		}
	}
	for _, spoil := range []func(*aggregate.RequestCommand){
		func(c *aggregate.RequestCommand) { c.Tenant = "" },
		func(c *aggregate.RequestCommand) { c.Account = "a b" },
		func(c *aggregate.RequestCommand) { c.Reference = "" },
		func(c *aggregate.RequestCommand) { c.Amount = "1e1" },
		func(c *aggregate.RequestCommand) { c.Currency = "eur" },
		func(c *aggregate.RequestCommand) { c.Destination = "\n" },
	} {
		c := first
		spoil(&c)
		if _, err := c.Event(); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
