package sqlite

import (
	"context"
	"errors"
	"runtime"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
)

const (
	// maxBatchCalls and maxBatchBytes bound one write transaction. At most 16 stream
	// appends per call times maxBatchCalls must stay below namesLimit.
	maxBatchCalls = 512
	maxBatchBytes = 4 << 20
)

// writer is the one goroutine that writes. It takes whatever calls are waiting, writes
// them in one transaction, and answers them once that is durable.
type writer struct {
	place   *place
	options Options
	queue   *queue
	// committed is told of every commit.
	committed *signal

	conn       *sqlite.Conn
	sql        *statements
	batch      *batch
	checkpoint *checkpointer
	verdicts   []result

	// stopped is closed when the goroutine has ended; closeErr is set before that.
	stopped  chan struct{}
	closeErr error
}

// connect opens the writer's connection if there is none.
func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := w.place.connectWriter(ctx, &w.options)
	if err != nil {
		return err
	}
	sql, err := prepare(conn)
	if err != nil {
		conn.Close()
		return w.place.fault("tables of the log are missing in it", "restore the file from a backup", err)
	}
	check, err := newCheckpointer(conn)
	if err != nil {
		conn.Close()
		return w.place.explain(err)
	}
	check.room = room{path: w.place.path + "-wal", begin: sql.begin, rollback: sql.rollback}
	w.conn, w.sql, w.checkpoint = conn, sql, check
	w.batch = &batch{sql: sql, names: newNames()}
	return nil
}

// run writes until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.stopped)
	calls := make([]*call, 0, maxBatchCalls)
	for {
		w.gather(len(calls))
		clear(calls[:cap(calls)])
		calls = w.queue.take(calls[:0], maxBatchCalls, maxBatchBytes)
		if len(calls) == 0 {
			break
		}
		w.write(calls)
		if w.conn != nil {
			w.checkpoint.consider()
		}
	}
	if w.conn != nil {
		w.checkpoint.finish()
		w.closeErr = w.conn.Close()
	}
}

// gather gives the callers that have just been answered the time to come back with
// their next append, so that they share a commit instead of waiting for the one of the
// first among them. It never waits for anything: it only lets goroutines run that can.
func (w *writer) gather(last int) {
	for waiting := w.queue.waiting(); waiting < last; {
		runtime.Gosched()
		now := w.queue.waiting()
		if now == waiting {
			return
		}
		waiting = now
	}
}

// write does one transaction for all calls and answers each of them. If the file
// refuses rows, each call gets a transaction of its own, so that the ones that have
// nothing to do with it go through, and the others learn which stream it is about.
func (w *writer) write(calls []*call) {
	err := w.transact(calls, false)
	if err == nil {
		for i, c := range calls {
			c.done <- w.verdicts[i]
		}
		return
	}
	// At a commit it is not known what became of the rows, so nothing may be repeated.
	apart := refusesRows(err) && errors.Is(err, eventlog.ErrNotExecuted)
	for i, c := range calls {
		r := result{err: err}
		if apart {
			if r.err = w.transact(calls[i:i+1], true); r.err == nil {
				r = w.verdicts[0]
			}
		}
		c.done <- r
	}
}

// transact checks and writes all calls and leaves their results in w.verdicts. If it
// returns an error that is the result of every call: [eventlog.ErrNotExecuted] when
// the transaction ended before its commit, [*eventlog.Damaged] when nothing can be
// written to this file, [eventlog.ErrUnknownResult] when the commit failed. Even a call
// that was refused gets it then, because it may have been refused on account of an
// earlier call of this batch.
func (w *writer) transact(calls []*call, careful bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.options.BusyTimeout)
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return notExecuted(err)
	}
	if err := step(w.options.steps.beforeBegin, w.conn); err != nil {
		return notExecuted(err)
	}
	if err := retry(ctx, w.options.BusyTimeout, func() error { return run(w.sql.begin) }); err != nil {
		w.abandon()
		return notExecuted(err)
	}
	w.batch.careful = careful
	if err := w.plan(calls); err != nil {
		w.abandon()
		var damaged *eventlog.Damaged
		if errors.As(err, &damaged) {
			return damaged
		}
		return notExecuted(err)
	}
	if err := run(w.sql.commit); err != nil {
		w.abandon()
		return unknownResult(err)
	}
	w.committed.broadcast()
	return nil
}

// plan does everything between BEGIN and COMMIT.
func (w *writer) plan(calls []*call) error {
	w.verdicts = w.verdicts[:0]
	if err := w.batch.start(); err != nil {
		return err
	}
	for _, c := range calls {
		verdict, err := w.batch.add(c)
		if err != nil {
			return err
		}
		w.verdicts = append(w.verdicts, verdict)
	}
	if err := w.batch.insert(); err != nil {
		return err
	}
	return step(w.options.steps.beforeCommit, w.conn)
}

// abandon ends a failed transaction. If the connection is not usable after that, it is
// closed, and the next batch opens another.
func (w *writer) abandon() {
	w.batch.forget()
	if w.conn.AutocommitEnabled() {
		return
	}
	if err := run(w.sql.rollback); err != nil || !w.conn.AutocommitEnabled() {
		w.conn.Close()
		w.conn = nil
	}
}

// newWriter opens the connection and starts the goroutine.
func newWriter(ctx context.Context, p *place, options *Options, committed *signal) (*writer, error) {
	w := &writer{place: p, options: *options, queue: newQueue(), committed: committed, stopped: make(chan struct{})}
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// close lets the writer finish what is in the queue and waits for it.
func (w *writer) close() error {
	w.queue.close()
	<-w.stopped
	return w.closeErr
}
