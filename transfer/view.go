package transfer

import (
	"context"
	"iter"

	"holdfast/eventlog"
	"holdfast/events"
)

// view is a log as the copy is about it: without its custody stream, up to a position, and
// for reading only. On it, a ledger answers for a log on which it would not act.
type view struct {
	eventlog.Log
	end eventlog.Position // 0 for all of it
}

// Append refuses.
func (v *view) Append(context.Context, ...eventlog.StreamAppend) (eventlog.Position, error) {
	return 0, eventlog.ErrReadOnly
}

// ReadStream leaves out the custody stream, and what came after the end.
func (v *view) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		if stream == events.CustodyStream {
			return
		}
		for r, err := range v.Log.ReadStream(ctx, stream, from) {
			if err == nil && v.end != 0 && r.Position > v.end || !yield(r, err) {
				return
			}
		}
	}
}

// ReadAll leaves out the same.
func (v *view) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return history(ctx, v.Log, after, v.end)
}
