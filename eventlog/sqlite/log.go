package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"holdfast/eventlog"
)

// Log is an event log in one SQLite file. Use Open to get one.
type Log struct {
	place   *place
	options Options
	writer  *writer // nil when the log is read-only
	readers *readers
	// committed is told of every commit of this process.
	committed *signal

	close func() error
}

var (
	_ eventlog.Dense  = (*Log)(nil)
	_ eventlog.Headed = (*Log)(nil)
)

// Open opens the log in the file at path, and creates it if there is none. Any number
// of processes may have it open at the same time. The context bounds the opening only.
//
// It returns [*eventlog.OpenError] when the file is not a log or cannot be used, and
// then has not written to it; that is [eventlog.ErrUnavailable] too when the reason may
// pass: another process keeps it locked, the disk is full or fails, the file system is
// mounted read-only; and [eventlog.ErrForbidden] when the user's rights do not allow it.
func Open(ctx context.Context, path string, options *Options) (*Log, error) {
	filled, err := options.filled()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p, err := inspect(path, &filled)
	if err != nil {
		return nil, err
	}
	l := &Log{place: p, options: filled, committed: newSignal()}
	l.close = sync.OnceValue(l.shut)
	if !filled.ReadOnly {
		if l.writer, err = newWriter(ctx, p, &filled, l.committed); err != nil {
			return nil, err
		}
	}
	if l.readers, err = newReaders(p, &filled); err != nil {
		if l.writer != nil {
			err = errors.Join(err, l.writer.close())
		}
		return nil, err
	}
	return l, nil
}

// Path returns the absolute path of the file.
func (l *Log) Path() string { return l.place.path }

// Append implements [eventlog.Log]; all stream appends are committed together or none
// is. It returns [*eventlog.Invalid], [*eventlog.Conflict], [*eventlog.Damaged],
// [eventlog.ErrNotExecuted], [eventlog.ErrUnknownResult] (a commit that failed, or a
// context that ended while the writer had the append), [eventlog.ErrReadOnly] and
// [eventlog.ErrClosed]. ErrNotExecuted and ErrUnknownResult wrap the error of SQLite or
// the context's cause.
func (l *Log) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	if err := eventlog.Validate(appends); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("%w: %w", eventlog.ErrNotExecuted, context.Cause(ctx))
	}
	if l.writer == nil {
		select {
		case <-l.readers.closed:
			return 0, eventlog.ErrClosed
		default:
			return 0, eventlog.ErrReadOnly
		}
	}
	return l.writer.queue.append(ctx, appends)
}

// ReadStream implements [eventlog.Log].
func (l *Log) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for from := from; from <= math.MaxInt64; {
			page, more, err := l.streamPage(ctx, stream, from)
			if !deliver(ctx, page, err, yield) || !more {
				return
			}
			from += uint64(len(page))
		}
	}
}

func (l *Log) streamPage(ctx context.Context, stream string, from uint64) ([]eventlog.Recorded, bool, error) {
	r, err := l.readers.borrow(ctx)
	if err != nil {
		return nil, false, err
	}
	defer l.readers.giveBack(r)
	page, more, err := r.readStream(stream, from)
	return page, more, readError(err)
}

// ReadAll implements [eventlog.Log].
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for after, more := after, true; more && after < math.MaxInt64; {
			var page []eventlog.Recorded
			var err error
			page, more, err = l.logPage(ctx, after)
			if !deliver(ctx, page, err, yield) {
				return
			}
			after = end(page, after)
		}
	}
}

// Follow implements [eventlog.Log]. Commits of this process wake it at once; those of
// others are noticed within Options.PollInterval.
func (l *Log) Follow(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		poll := time.NewTicker(l.options.PollInterval)
		defer poll.Stop()
		for after := after; ; {
			commit := l.committed.next()
			page, more, err := l.logPage(ctx, after)
			if !deliver(ctx, page, err, yield) {
				return
			}
			after = end(page, after)
			if more {
				continue
			}
			select {
			case <-commit:
			case <-poll.C:
			case <-ctx.Done():
			case <-l.readers.closed:
			}
		}
	}
}

// end is the position of the last event of a page, or after if there is none.
func end(page []eventlog.Recorded, after eventlog.Position) eventlog.Position {
	if len(page) == 0 {
		return after
	}
	return page[len(page)-1].Position
}

// DensePositions implements [eventlog.Dense]: positions count up from 1.
func (l *Log) DensePositions() {}

// Head implements [eventlog.Headed].
func (l *Log) Head(ctx context.Context) (eventlog.Position, error) {
	r, err := l.readers.borrow(ctx)
	if err != nil {
		return eventlog.Start, err
	}
	defer l.readers.giveBack(r)
	last, err := single(r.last)
	return eventlog.Position(last), readError(err)
}

func (l *Log) logPage(ctx context.Context, after eventlog.Position) ([]eventlog.Recorded, bool, error) {
	r, err := l.readers.borrow(ctx)
	if err != nil {
		return nil, false, err
	}
	defer l.readers.giveBack(r)
	page, more, err := r.readAll(after)
	return page, more, readError(err)
}

// deliver yields a page and then its error, and reports whether the reading may go on.
func deliver(ctx context.Context, page []eventlog.Recorded, err error, yield func(eventlog.Recorded, error) bool) bool {
	for i := range page {
		if i > 0 && ctx.Err() != nil {
			yield(eventlog.Recorded{}, context.Cause(ctx))
			return false
		}
		if !yield(page[i], nil) {
			return false
		}
	}
	if err != nil {
		yield(eventlog.Recorded{}, err)
		return false
	}
	return true
}

// readError leaves what reading itself says and wraps errors of SQLite.
func readError(err error) error {
	var damaged *eventlog.Damaged
	if err == nil || errors.As(err, &damaged) {
		return err
	}
	return unavailable(err)
}

// Close implements [eventlog.Log]: what is queued is written and answered, reads under
// way end with [eventlog.ErrClosed] after the page they are at, and the write-ahead log
// is moved to the main file if this was the last connection to it.
func (l *Log) Close() error { return l.close() }

func (l *Log) shut() error {
	var writing error
	if l.writer != nil {
		l.writer.queue.close()
	}
	reading := l.readers.close()
	if l.writer != nil {
		writing = l.writer.close()
	}
	return errors.Join(reading, writing)
}
