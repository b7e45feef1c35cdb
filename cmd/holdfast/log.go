package main

import (
	"context"
	"fmt"

	"holdfast/eventlog"
	"holdfast/eventlog/engines"
)

// openLog opens the log that a URL names. Only a command that creates one makes a log
// that is not there. A log in memory is always new: it has nothing to read, and says so
// as any empty log does.
func openLog(ctx context.Context, url string, a access) (eventlog.Log, error) {
	if url == "memory:" {
		a = creates
	}
	return engines.Open(ctx, url, &engines.Options{ReadOnly: a == reads, MustExist: a != creates})
}

// head returns how many events a log has, and false where its positions do not say. It
// looks for the last position by bisection, since a log is not asked for its length.
func head(ctx context.Context, log eventlog.Log) (uint64, bool, error) {
	if _, ok := log.(eventlog.Dense); !ok {
		return 0, false, nil
	}
	after := func(p uint64) (bool, error) {
		for _, err := range log.ReadAll(ctx, eventlog.Position(p)) {
			return err == nil, err
		}
		return false, nil
	}
	below, above := uint64(0), uint64(1) // there are at least below events, and fewer than above
	for {
		more, err := after(above - 1)
		if err != nil {
			return 0, false, fmt.Errorf("the log cannot be measured: %w", err)
		}
		if !more {
			break
		}
		below, above = above, 2*above
	}
	for below+1 < above {
		middle := below + (above-below)/2
		more, err := after(middle - 1)
		if err != nil {
			return 0, false, fmt.Errorf("the log cannot be measured: %w", err)
		}
		if more {
			below = middle
		} else {
			above = middle
		}
	}
	return below, true, nil
}
