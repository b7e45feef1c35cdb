package kurrent

import (
	"context"
	"time"
)

// workers are goroutines that make the calls into the client. They are kept for a while,
// because a new one would have to grow its stack anew at each call, which costs a tenth of
// it.
type workers struct {
	jobs chan func()
	// closing ends those that wait.
	closing context.Context
}

// idle is how long a worker waits for its next call.
const idle = time.Second

// do lets a worker do a job: one that waits, or a new one.
func (w *workers) do(job func()) {
	select {
	case w.jobs <- job:
	default:
		go w.work(job)
	}
}

func (w *workers) work(job func()) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		job()
		timer.Reset(idle)
		select {
		case job = <-w.jobs:
		case <-timer.C:
			return
		case <-w.closing.Done():
			return
		}
	}
}
