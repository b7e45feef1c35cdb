package projections

import (
	"iter"
	"sync"

	"holdfast/eventlog"
)

// batchSize is how many events are folded and written together.
const batchSize = 4096

// inbox lets one goroutine read the log while another works on what was read.
type inbox struct {
	mu        sync.Mutex
	changed   sync.Cond
	events    []eventlog.Recorded
	ended     bool
	abandoned bool
	err       error
}

func newInbox() *inbox {
	b := &inbox{}
	b.changed.L = &b.mu
	return b
}

// fill reads until the events end, or nobody takes them any more.
func (b *inbox) fill(events iter.Seq2[eventlog.Recorded, error]) {
	for e, err := range events {
		if !b.put(e, err) {
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.changed.Broadcast()
}

// put waits while there is a batch that nobody has taken.
func (b *inbox) put(e eventlog.Recorded, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.events) >= batchSize && !b.abandoned {
		b.changed.Wait()
	}
	if err != nil {
		b.err = err
	} else {
		b.events = append(b.events, e)
	}
	if n := len(b.events); n == 1 || n == batchSize || err != nil {
		b.changed.Broadcast()
	}
	return !b.abandoned && err == nil
}

// take returns what was read: a whole batch, or the rest; or, when eager, whatever is
// there. It returns nothing at the end, with the error that was the end.
func (b *inbox) take(eager bool) ([]eventlog.Recorded, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.events) == 0 || !eager && len(b.events) < batchSize {
		if b.ended || b.err != nil {
			break
		}
		b.changed.Wait()
	}
	taken := b.events
	b.events = nil
	b.changed.Broadcast()
	if len(taken) > 0 {
		return taken, nil
	}
	return nil, b.err
}

// abandon makes fill return.
func (b *inbox) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.abandoned = true
	b.changed.Broadcast()
}
