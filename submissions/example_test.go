package submissions_test

import (
	"context"
	"errors"
	"fmt"

	"holdfast/eventlog/memory"
	"holdfast/rail"
	"holdfast/submissions"
)

// The heart of it: the second client, which knows nothing of the first, is told who
// holds the withdrawal, and nothing is sent twice.
func Example() {
	ctx := context.Background()
	ledger, err := submissions.New(memory.New(), nil) // sqlite.Open(ctx, "holdfast.db", nil) keeps it
	if err != nil {
		panic(err)
	}
	withdrawal, err := ledger.Request(ctx, submissions.Request{
		Account: "alice", Reference: "order-17", Amount: "10.25", Currency: "EUR", Destination: "DE89370400440532013000",
	})
	if err != nil {
		panic(err)
	}
	send := func(_ context.Context, p rail.Payment) (rail.Receipt, error) {
		fmt.Println("the bank sends", p.Amount, p.Currency)
		return rail.Receipt{Reference: "tx-1"}, nil
	}

	first, err := ledger.Submit(ctx, "req-1", withdrawal.ID, send, nil)
	fmt.Println(first.Result, first.Reference, err)

	again, err := ledger.Submit(ctx, "req-1", withdrawal.ID, send, nil)
	fmt.Println(again.Result, again.Reference, err)

	_, err = ledger.Submit(ctx, "req-2", withdrawal.ID, send, nil)
	var refusal *submissions.Refusal
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code, "by", refusal.Holder)
	}
	// Output:
	// the bank sends 10.25 EUR
	// sent tx-1 <nil>
	// sent tx-1 <nil>
	// withdrawal-claimed by req-1
}

// A send that ended without an answer keeps its claim until a person has looked.
func ExampleLedger_Resolve() {
	ctx := context.Background()
	ledger, err := submissions.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	withdrawal, err := ledger.Request(ctx, submissions.Request{
		Account: "alice", Reference: "order-18", Amount: "99", Currency: "EUR", Destination: "DE89370400440532013000",
	})
	if err != nil {
		panic(err)
	}
	timesOut := func(context.Context, rail.Payment) (rail.Receipt, error) {
		return rail.Receipt{}, errors.New("the bank did not answer")
	}
	_, err = ledger.Submit(ctx, "req-1", withdrawal.ID, timesOut, nil)
	code, _ := submissions.CodeOf(err)
	fmt.Println(code)

	_, err = ledger.Submit(ctx, "req-1", withdrawal.ID, timesOut, nil)
	code, _ = submissions.CodeOf(err)
	fmt.Println(code)

	outcome, err := ledger.Resolve(ctx, "req-1", submissions.Resolution{
		By: submissions.By{Actor: "ann"}, Result: "sent", Reference: "tx-7",
		Reason: "it is on the bank's statement", Evidence: "statement 2030-01-02, line 44",
	})
	fmt.Println(outcome.Result, outcome.Reference, "on the word of", outcome.Actor, err)
	// Output:
	// outcome-unknown
	// in-flight
	// sent tx-7 on the word of ann <nil>
}
