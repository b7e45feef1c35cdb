package aggregate_test

import (
	"fmt"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
)

func ExampleSubmit() {
	requested, err := aggregate.RequestCommand{
		Tenant: "default", Account: "alice", Reference: "order-17", Amount: "10", Currency: "EUR", Destination: "there",
	}.Event()
	if err != nil {
		panic(err)
	}
	now := time.Unix(1_900_000_000, 0)
	w, err := aggregate.Withdrawal{}.Apply(events.Recorded{
		Stream: requested.Withdrawal.Stream(), Event: requested, Metadata: events.Metadata{RecordedAt: events.At(now), Actor: "ann"},
	})
	if err != nil {
		panic(err)
	}
	plan, err := aggregate.Submit(
		aggregate.SubmitCommand{Withdrawal: requested.Withdrawal, Rail: "bank", Deadline: now.Add(time.Minute)},
		aggregate.Claimant{Tenant: "default", Key: "req-1", Now: now, Withdrawal: w})
	for _, e := range append(plan.Key, plan.Withdrawal...) {
		fmt.Println(e.Type())
	}
	fmt.Println(err)
	// Output:
	// KeyReserved
	// KeyClaimed
	// SendAttempted
	// <nil>
}
