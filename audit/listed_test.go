package audit_test

import (
	"context"
	"iter"

	"holdfast/eventlog"
)

// listed is a log with any events whatever, for reading all of it.
type listed struct{ all []eventlog.Recorded }

func (l *listed) Append(context.Context, ...eventlog.StreamAppend) (eventlog.Position, error) {
	return 0, eventlog.ErrReadOnly
}

func (l *listed) ReadStream(context.Context, string, uint64) iter.Seq2[eventlog.Recorded, error] {
	return func(func(eventlog.Recorded, error) bool) {}
}

func (l *listed) ReadAll(context.Context, eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for _, e := range l.all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (l *listed) Follow(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return l.ReadAll(ctx, after)
}

func (l *listed) Close() error { return nil }
