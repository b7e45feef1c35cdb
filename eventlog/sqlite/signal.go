package sqlite

import "sync"

// signal wakes everybody who waits for the next commit.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

func newSignal() *signal { return &signal{ch: make(chan struct{})} }

// next returns a channel that is closed at the next broadcast. To miss nothing, take
// it before looking at what the broadcast is about.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ch
}

// broadcast wakes everybody.
func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ch)
	s.ch = make(chan struct{})
}
