package sqlite

import (
	"context"
	"fmt"
	"sync"

	"holdfast/eventlog"
)

// call is one append that waits to be written.
type call struct {
	appends []eventlog.StreamAppend
	// size is about how many bytes it will write.
	size int
	// done gets the result once; it is buffered, so that the writer never waits.
	done chan result
}

// result is what an append call returns.
type result struct {
	position eventlog.Position
	err      error
}

// queue holds the calls that the writer has not taken yet. Its mutex decides between a
// caller that gives up and the writer that takes the call: one of them wins, so a call
// that was withdrawn is never written.
type queue struct {
	mu     sync.Mutex
	calls  []*call
	closed bool
	// ready holds a token when the writer should look.
	ready chan struct{}
}

func newQueue() *queue {
	return &queue{ready: make(chan struct{}, 1)}
}

// put adds a call, or returns [eventlog.ErrClosed].
func (q *queue) put(c *call) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return eventlog.ErrClosed
	}
	q.calls = append(q.calls, c)
	q.wake()
	return nil
}

// withdraw takes a call back, and reports whether the writer had not taken it yet.
func (q *queue) withdraw(c *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.calls {
		if q.calls[i] == c {
			q.calls = append(q.calls[:i], q.calls[i+1:]...)
			return true
		}
	}
	return false
}

// take waits for calls, appends the first of them to batch, and returns it: at most
// maxCalls of them, and no more once they have reached maxBytes. It returns an empty
// batch when the queue is closed and nothing is left in it.
func (q *queue) take(batch []*call, maxCalls, maxBytes int) []*call {
	for {
		q.mu.Lock()
		n, size := 0, 0
		for n < len(q.calls) && n < maxCalls && size < maxBytes {
			size += q.calls[n].size
			n++
		}
		batch = append(batch, q.calls[:n]...)
		rest := copy(q.calls, q.calls[n:])
		clear(q.calls[rest:])
		q.calls = q.calls[:rest]
		closed := q.closed
		if rest > 0 {
			q.wake()
		}
		q.mu.Unlock()
		if len(batch) > 0 || closed {
			return batch
		}
		<-q.ready
	}
}

// waiting is the number of calls in the queue.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls)
}

// close refuses further calls; those in the queue are still taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
}

// wake leaves a token for the writer. The caller holds the mutex.
func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// append hands a call to the writer and waits for its result.
func (q *queue) append(ctx context.Context, appends []eventlog.StreamAppend) (eventlog.Position, error) {
	c := &call{appends: appends, size: sizeOf(appends), done: make(chan result, 1)}
	if err := q.put(c); err != nil {
		return 0, err
	}
	select {
	case r := <-c.done:
		return r.position, r.err
	case <-ctx.Done():
	}
	if q.withdraw(c) {
		return 0, fmt.Errorf("%w: %w", eventlog.ErrNotExecuted, context.Cause(ctx))
	}
	select {
	case r := <-c.done:
		return r.position, r.err
	default:
		return 0, fmt.Errorf("%w: %w", eventlog.ErrUnknownResult, context.Cause(ctx))
	}
}

// rowOverhead is about what a row costs on disk besides its bytes.
const rowOverhead = 64

func sizeOf(appends []eventlog.StreamAppend) int {
	size := 0
	for i := range appends {
		for j := range appends[i].Events {
			e := &appends[i].Events[j]
			size += len(e.Type) + len(e.Data) + len(e.Metadata) + rowOverhead
		}
	}
	return size
}
