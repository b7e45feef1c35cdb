package simulated_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/events"
	"holdfast/rail"
	"holdfast/rail/simulated"
)

// A ledger that takes an error for a failure pays twice, and the book shows it.
func Example() {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "book.jsonl")

	r, err := simulated.Open(path, &simulated.Options{
		Fault: func(p rail.Payment) simulated.Fault {
			if p.Attempt == 1 {
				return simulated.FaultErrorAfter
			}
			return simulated.FaultNone
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	amount, err := events.ParseAmount("25")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := rail.Payment{
		Withdrawal:  "w1",
		Account:     "acc-1",
		Amount:      amount,
		Currency:    "EUR",
		Destination: "DE02120300000000202051",
		Token:       "w1",
		Attempt:     1,
	}
	_, err = r.Send(context.Background(), p)
	fmt.Println(err)

	p.Attempt = 2 // somebody believed the error
	_, err = r.Send(context.Background(), p)
	fmt.Println(err)

	left, err := simulated.Count(path)
	fmt.Println(left, err)
	// Output:
	// simulated: the connection to the rail broke
	// <nil>
	// map[w1:2] <nil>
}
