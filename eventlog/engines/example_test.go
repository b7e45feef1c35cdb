package engines_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/eventlog/engines"
)

// Two callers have read the same stream and both append to it: one of them wins.
func ExampleOpen() {
	ctx := context.Background()
	log, err := engines.Open(ctx, "memory:", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	for _, key := range []string{"req-1", "req-2"} {
		_, err := log.Append(ctx, eventlog.StreamAppend{
			Stream: "withdrawal-w123",
			At:     0,
			Events: []eventlog.Event{{ID: uuid.New(), Type: "KeyClaimed", Data: []byte(key)}},
		})
		var conflict *eventlog.Conflict
		if errors.As(err, &conflict) {
			fmt.Println(key, "lost:", err)
		} else {
			fmt.Println(key, "claimed the withdrawal:", err == nil)
		}
	}
	// Output:
	// req-1 claimed the withdrawal: true
	// req-2 lost: eventlog: conflict on stream "withdrawal-w123": expected exactly 0 events, it has 1
}
