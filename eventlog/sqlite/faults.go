package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
)

// notExecuted wraps an error of SQLite before COMMIT: nothing was written.
func notExecuted(err error) error {
	return fmt.Errorf("%w: %s: %w", eventlog.ErrNotExecuted, explain(err), err)
}

// unknownResult wraps an error of SQLite at COMMIT: after a failed write or sync, a
// later recovery of the write-ahead log may still find the whole commit.
func unknownResult(err error) error {
	return fmt.Errorf("%w: %s: %w", eventlog.ErrUnknownResult, explain(err), err)
}

// unavailable wraps an error of SQLite during a read.
func unavailable(err error) error {
	return fmt.Errorf("%w: %s: %w", eventlog.ErrUnavailable, explain(err), err)
}

// explain says in words what the primary code of an SQLite error means for a log.
func explain(err error) string {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		return "the disk is full"
	case sqlite.ResultReadOnly:
		return "the file or its folder is read-only"
	case sqlite.ResultIOErr:
		return "the disk failed"
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return "another process is writing and did not finish in time"
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return "the file is damaged"
	case sqlite.ResultCantOpen:
		return "the file or its write-ahead log cannot be opened"
	case sqlite.ResultNoMem:
		return "there is not enough memory"
	case sqlite.ResultConstraint:
		return "the file's own rules refused the rows, so it is not what this program wrote"
	default:
		return "SQLite reports an error"
	}
}

// empty is the damage of a stream that is known by name and has no events.
func empty(stream string) *eventlog.Damaged {
	return &eventlog.Damaged{Stream: stream, Kind: eventlog.Truncated, Reason: "it exists but has no events"}
}

// refusesRows reports whether the file's own rules refused what this program writes,
// after it had been checked in the same transaction: then the file is not what this
// program wrote, and no later attempt will go better.
func refusesRows(err error) bool {
	return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultConstraint
}

func isBusy(err error) bool {
	return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy
}
