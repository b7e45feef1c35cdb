package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/rail"
)

// shared is a log that outlives the command that closes it.
type shared struct{ eventlog.Log }

func (shared) Close() error { return nil }

// slow is a rail that does not end when its context does.
type slow struct {
	rail.Rail
	takes time.Duration
}

func (r slow) Send(context.Context, rail.Payment) (rail.Receipt, error) {
	time.Sleep(r.takes) // the bubble's own time
	fee, err := events.ParseAmount("0.35")
	return rail.Receipt{Reference: "late-1", Fee: fee, Time: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}, err
}

// TestAnswerAfterTheCaller: a command whose send has timed out says so, and stays until
// the rail's answer is recorded, or until it has waited long enough.
func TestAnswerAfterTheCaller(t *testing.T) {
	for _, tt := range []struct {
		name  string
		takes time.Duration
		note  bool
		state string
	}{
		{"recorded before the end", 4 * time.Second, false, `"state":"sent"`},
		{"still under way at the end", time.Minute, true, `"state":"unknown"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newTestProgram(t)
				log := memory.New()
				defer log.Close()
				p.openLog = func(context.Context, string, access) (eventlog.Log, error) { return shared{log}, nil }
				p.openRail = func(q *program, spec, fault string) (rail.Rail, error) {
					r, err := openRail(q, spec, fault)
					return slow{r, tt.takes}, err
				}
				id := p.requestOne(t)
				r := p.run(t, "submit", "--key", "k", "--withdrawal", id, "--timeout", "1s")
				if !strings.Contains(r.stderr, "(outcome-unknown)") || r.exit != 5 || r.stdout != "" {
					t.Errorf("%s", r)
				}
				if got := strings.Contains(r.stderr, "the rail has not answered within 5s"); got != tt.note {
					t.Errorf("it says that the rail has not answered: %v, want %v\n%s", got, tt.note, r)
				}
				if r := p.run(t, "outcome", "--key", "k", "--json"); !strings.Contains(r.stdout, tt.state) {
					t.Errorf("want %s\n%s", tt.state, r)
				}
				time.Sleep(tt.takes) // and then the rail answers after all
				synctest.Wait()
				if r := p.run(t, "outcome", "--key", "k"); r.fact("Rail reference") != "late-1" ||
					r.fact("Rail's fee") != "0.35" || !strings.HasPrefix(r.fact("Rail's time"), "2030-01-02T03:04:05") {
					t.Errorf("%s", r)
				}
			})
		})
	}
}

// full is a log that takes nothing more once it is.
type full struct {
	shared
	now *atomic.Bool
}

func (l full) Append(ctx context.Context, streams ...eventlog.StreamAppend) (eventlog.Position, error) {
	if l.now.Load() {
		return 0, fmt.Errorf("%w: the disk is full", eventlog.ErrNotExecuted)
	}
	return l.shared.Append(ctx, streams...)
}

// TestAnswerThatIsNotRecorded: when it is the log that fails, the rail is not said to be
// silent, and what it answered is told.
func TestAnswerThatIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestProgram(t)
		log := memory.New()
		defer log.Close()
		var isFull atomic.Bool
		p.openLog = func(context.Context, string, access) (eventlog.Log, error) { return full{shared{log}, &isFull}, nil }
		id := p.requestOne(t)
		p.openRail = func(q *program, spec, fault string) (rail.Rail, error) {
			r, err := openRail(q, spec, fault)
			return meanwhile{r, func() { isFull.Store(true) }}, err
		}
		r := p.run(t, "submit", "--key", "k", "--withdrawal", id, "--timeout", "1s")
		if r.exit != 5 || strings.Contains(r.stderr, "the rail has not answered within") || !strings.Contains(r.stderr, "the rail answered (sent as sim-") {
			t.Errorf("%s", r)
		}
		time.Sleep(time.Minute)
		synctest.Wait()

		if r := p.run(t, "outcome", "--key", "k", "--json"); r.exit != 0 || strings.Contains(r.stdout, `"outcome":`) {
			t.Errorf("%s", r)
		}
		isFull.Store(false)
		time.Sleep(time.Minute) // the answer is still being tried, as long as there is a log
		if r := p.run(t, "outcome", "--key", "k", "--json"); r.exit != 0 || !strings.Contains(r.stdout, `"outcome":`) {
			t.Errorf("%s", r)
		}
	})
}
