package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progressEvery is how often progress is told where there is no terminal.
const progressEvery = 10 * time.Second

// progress shows on standard error how far a long reading of the log is: a bar on a
// terminal, a line now and then elsewhere.
type progress struct {
	events atomic.Uint64
	stop   func()
}

// at says that so many events were looked at.
func (p *progress) at(events uint64) { p.events.Store(events) }

// startProgress starts to show progress towards a total, which is 0 where nobody knows it.
func (c *call) startProgress(total uint64) *progress {
	p := &progress{}
	tell := func(elapsed time.Duration) { c.tellProgress(p.events.Load(), total, elapsed) }
	every := progressEvery
	finish := func() {}
	if c.terminal(c.stderr) {
		bar, end := newBar(c.stderr, total)
		tell = func(time.Duration) { bar.SetCurrent(int64(p.events.Load())) }
		every, finish = 100*time.Millisecond, end
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	started := time.Now()
	running.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				tell(time.Since(started))
			case <-done:
				return
			}
		}
	})
	p.stop = func() {
		close(done)
		running.Wait()
		finish()
	}
	return p
}

// newBar returns a bar with rate and time left, and what takes it away.
func newBar(w io.Writer, total uint64) (*mpb.Bar, func()) {
	container := mpb.New(mpb.WithOutput(w), mpb.WithWidth(64))
	counters := decor.CountersNoUnit("%d / %d events ")
	left := decor.AverageETA(decor.ET_STYLE_GO)
	if total == 0 {
		counters, left = decor.CurrentNoUnit("%d events "), decor.Name("")
	}
	bar := container.AddBar(int64(total),
		mpb.PrependDecorators(counters),
		mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f/s "), left))
	return bar, func() {
		bar.Abort(true)
		container.Wait()
	}
}

// tellProgress writes one line of progress.
func (c *call) tellProgress(events, total uint64, elapsed time.Duration) {
	rate := float64(events) / elapsed.Seconds()
	d := progressDocument{Events: events, Total: total, PerSecond: int64(rate)}
	if total > events && rate > 0 {
		left := time.Duration(float64(total-events) / rate * float64(time.Second)).Round(time.Second)
		d.SecondsLeft = int64(left.Seconds())
	}
	if c.inJSON() {
		c.stderr.Write(encode(map[string]progressDocument{"progress": d}))
		return
	}
	line := fmt.Sprintf("%d events", events)
	if total > 0 {
		line = fmt.Sprintf("%d of %d events", events, total)
	}
	line += fmt.Sprintf(", %d/s", d.PerSecond)
	if d.SecondsLeft > 0 {
		line += fmt.Sprintf(", %s left", time.Duration(d.SecondsLeft)*time.Second)
	}
	fmt.Fprintln(c.stderr, line)
}

type progressDocument struct {
	Events      uint64 `json:"events"`
	Total       uint64 `json:"total,omitempty"`
	PerSecond   int64  `json:"per_second"`
	SecondsLeft int64  `json:"seconds_left,omitempty"`
}
