package events_test

import (
	"fmt"
	"time"

	"holdfast/events"
)

func ExampleChain() {
	codec := events.NewCodec()
	released := events.Released{Key: "req-1", Reason: "looked", Evidence: "statement 7"}
	writing := codec.Chain("withdrawal-1")
	stored, _, err := writing.Append([16]byte{1}, released, events.Metadata{
		RecordedAt: events.At(time.Unix(1_900_000_000, 0)), Actor: "ann",
	})
	fmt.Println(string(stored.Data), err)

	reading := codec.Chain("withdrawal-1")
	recorded, err := reading.Read(stored)
	fmt.Println(recorded.Event == events.Event(released), recorded.Metadata.Actor, err)

	stored.Data[2] ^= 1
	reading = codec.Chain("withdrawal-1")
	_, err = reading.Read(stored)
	fmt.Println(err)
	// Output:
	// {"key":"req-1","reason":"looked","evidence":"statement 7"} <nil>
	// true ann <nil>
	// stream withdrawal-1, revision 0: content-changed: Released: its bytes do not have the digest that they were written with
}

func ExampleParseAmount() {
	a, _ := events.ParseAmount("10.50")
	b, _ := events.ParseAmount("10.5")
	fmt.Println(a, a == b)
	_, err := events.ParseAmount("1e1")
	fmt.Println(err)
	// Output:
	// 10.5 true
	// amount "1e1" has a character that is not a digit or a point; write digits with at most one point, such as 10 or 10.25
}
