package logtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"holdfast/eventlog"
)

// ErrInjected is the cause in every error that a [FaultyLog] makes up.
var ErrInjected = errors.New("logtest: injected fault")

// Fault is a way in which an append can fail.
type Fault int

const (
	// UnknownAfterCommit applies the append and then reports
	// [eventlog.ErrUnknownResult]: the answer was lost.
	UnknownAfterCommit Fault = iota + 1
	// UnknownBeforeCommit applies nothing and reports [eventlog.ErrUnknownResult]:
	// the request was lost.
	UnknownBeforeCommit
	// NotExecuted applies nothing and reports [eventlog.ErrNotExecuted].
	NotExecuted
)

// FaultyLog is a log whose appends fail on demand. Everything else is passed on.
type FaultyLog struct {
	eventlog.Log

	mu     sync.Mutex
	faults []Fault
}

// Faulty returns a log that passes everything on until faults are added to it.
func Faulty(log eventlog.Log) *FaultyLog { return &FaultyLog{Log: log} }

// Next makes the next appends fail, one fault each, in this order.
func (f *FaultyLog) Next(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, faults...)
}

func (f *FaultyLog) take() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.faults) == 0 {
		return 0
	}
	fault := f.faults[0]
	f.faults = f.faults[1:]
	return fault
}

// Append implements [eventlog.Log]. When a fault is due, it returns
// [eventlog.ErrUnknownResult] or [eventlog.ErrNotExecuted], wrapping [ErrInjected]; an
// append that the log itself refuses returns what the log says.
func (f *FaultyLog) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	switch f.take() {
	case UnknownAfterCommit:
		if _, err := f.Log.Append(ctx, appends...); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("%w: %w", eventlog.ErrUnknownResult, ErrInjected)
	case UnknownBeforeCommit:
		return 0, fmt.Errorf("%w: %w", eventlog.ErrUnknownResult, ErrInjected)
	case NotExecuted:
		return 0, fmt.Errorf("%w: %w", eventlog.ErrNotExecuted, ErrInjected)
	default:
		return f.Log.Append(ctx, appends...)
	}
}
