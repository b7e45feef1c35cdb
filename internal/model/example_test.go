package model_test

import (
	"fmt"
	"time"

	"holdfast/internal/model"
)

// A submission is two commands: until the rail is called, and from its answer on.
func Example() {
	l := model.New(time.Minute)
	c := model.Command{Verb: model.Request, Tenant: "default", Key: "K1", Withdrawal: "W"}
	l.Do(c)

	c.Verb, c.Deadline = model.Submit, time.Hour
	fmt.Println("attempt", l.Do(c).Attempt)
	fmt.Println(l.Do(c).Code, l.Do(c).State)

	other := c
	other.Key = "K2"
	fmt.Println(l.Do(other).Code, l.Do(other).Holder)

	c.Verb, c.Attempt, c.Result, c.Reference = model.Report, 1, "sent", "tx-1"
	fmt.Println(l.Do(c).Said.Reference)
	// Output:
	// attempt 1
	// in-flight sending
	// withdrawal-claimed K1
	// tx-1
}
