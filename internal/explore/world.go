package explore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/submissions"
)

// world is one schedule under way: the log, the rail, and the processes.
type world struct {
	scenario Scenario
	log      *memory.Log
	ids      []events.WithdrawalID
	actors   []*actor
	spent    Budget
	story    []Decision

	mu   sync.Mutex
	left map[events.WithdrawalID][]int // the rail's book: which attempts money left in
	uuid uint64
}

// Decision is one thing that the search let happen.
type Decision struct {
	Actor  int
	Choice Choice
	// What says which step it was, for people.
	What string
}

// state is a digest of everything that what happens next depends on.
type state [16]byte

// day is how far the processes' clocks are ahead of the first one's: long enough for any
// deadline to be over, as it is for an operator who comes later.
const day = 24 * time.Hour

// play runs one schedule in a bubble of its own. At every point where something can
// happen, pick is given the state and the decisions there are, and returns the one to
// take, or nil to stop. At the end of the schedule, end is called.
func play(t *testing.T, s Scenario, pick func(state, []Decision) *Decision, end func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{scenario: s, log: memory.New(), left: map[events.WithdrawalID][]int{}}
		defer w.log.Close()
		ctx, cancel := context.WithCancel(context.Background())
		setup := w.ledger(w.log, 0)
		for i := range s.Withdrawals {
			w.ids = append(w.ids, w.request(setup, i))
		}
		for i, a := range s.Actors {
			w.start(ctx, i, a)
		}
		w.schedule(pick, end)
		// Whoever is still at something is let go.
		cancel()
		w.mu.Lock()
		for _, a := range w.actors {
			a.dead = true
			if a.waiting != nil {
				close(a.waiting.granted)
			}
		}
		w.mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

func (w *world) ledger(log eventlog.Log, ahead time.Duration) *submissions.Ledger {
	l, err := submissions.New(log, &submissions.Options{
		Clock: func() time.Time { return time.Now().Add(ahead) },
		NewID: w.newID,
	})
	if err != nil {
		panic(err)
	}
	return l
}

// newID counts: ids need to be fresh, and a schedule has to be the same each time.
func (w *world) newID() (id uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uuid++
	id[0] = 1
	binary.BigEndian.PutUint64(id[8:], w.uuid)
	return id
}

func (w *world) request(l *submissions.Ledger, i int) events.WithdrawalID {
	s, err := l.Request(context.Background(), submissions.Request{
		Account: "alice", Reference: fmt.Sprintf("order-%d", i), Amount: fmt.Sprint(10 + i), Currency: "EUR", Destination: "there",
	})
	if err != nil {
		panic(err)
	}
	return s.ID
}

func (w *world) start(ctx context.Context, i int, does Actor) {
	a := &actor{world: w, index: i, name: does.Name}
	log := &switchLog{Log: w.log}
	p := &Process{Log: log, Ledger: w.ledger(log, time.Duration(i)*day), Withdrawals: w.ids, Send: a.send, actor: a}
	p.Sent = func(id events.WithdrawalID) int {
		a.want("looks at the rail's book for "+w.nickname(id.Stream()), readChoices)
		w.mu.Lock()
		n := len(w.left[id])
		w.mu.Unlock()
		a.saw("%d left", n)
		return n
	}
	if w.scenario.Remembered {
		for i := range w.ids {
			w.request(p.Ledger, i)
		}
	}
	log.Log = &stepLog{Log: w.log, actor: a, apart: w.scenario.Apart}
	w.actors = append(w.actors, a)
	go func() {
		defer func() {
			w.mu.Lock()
			a.done = true
			w.mu.Unlock()
		}()
		does.Do(ctx, p)
	}()
}

// switchLog is a log that can be exchanged for another.
type switchLog struct{ eventlog.Log }

// schedule lets one thing happen after another until nothing can.
func (w *world) schedule(pick func(state, []Decision) *Decision, end func(*world)) {
	for idle := 0; ; {
		synctest.Wait()
		decisions, asleep := w.decisions()
		if asleep && len(decisions) == 0 {
			// Somebody waits for time to pass: a pause between two tries.
			if idle++; idle > 10_000 {
				panic("explore: a process neither goes on nor ends")
			}
			time.Sleep(time.Millisecond)
			continue
		}
		if asleep {
			// The pause of one must not depend on the steps of others.
			time.Sleep(time.Millisecond)
			if idle++; idle < 1000 {
				continue
			}
		}
		idle = 0
		d := pick(w.state(), decisions)
		if d == nil {
			return
		}
		if len(decisions) == 0 {
			end(w)
			return
		}
		w.grant(*d)
	}
}

// decisions returns what can happen now, and whether some process waits for time alone.
func (w *world) decisions() (all []Decision, asleep bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.actors {
		switch {
		case a.dead || a.done:
		case a.waiting == nil:
			asleep = true
		default:
			for _, c := range a.waiting.choices {
				if w.affords(c) {
					all = append(all, Decision{Actor: a.index, Choice: c, What: a.waiting.label})
				}
			}
		}
	}
	return all, asleep
}

// cost is what a choice takes out of the budget.
func cost(c Choice) Budget {
	switch c {
	case KilledBefore, KilledAfter:
		return Budget{Crashes: 1}
	case LostDone, LostUndone:
		return Budget{Lost: 1}
	case Refused, FailedBefore, FailedAfter:
		return Budget{Rail: 1}
	}
	return Budget{}
}

func (w *world) affords(c Choice) bool {
	b, s := w.scenario.Budget, cost(c)
	return w.spent.Crashes+s.Crashes <= b.Crashes && w.spent.Lost+s.Lost <= b.Lost && w.spent.Rail+s.Rail <= b.Rail
}

func (w *world) grant(d Decision) {
	s := cost(d.Choice)
	w.spent = Budget{w.spent.Crashes + s.Crashes, w.spent.Lost + s.Lost, w.spent.Rail + s.Rail}
	w.story = append(w.story, d)
	a := w.actors[d.Actor]
	w.mu.Lock()
	granted := a.waiting.granted
	a.waiting = nil
	w.mu.Unlock()
	granted <- d.Choice
}

// times are the parts of an event's data that depend on the clock.
var times = regexp.MustCompile(`"deadline":"[^"]*"`)

// state digests the log, the rail's book, what each process has seen, and what may still
// go wrong.
func (w *world) state() (s state) {
	var b strings.Builder
	streams := map[string][]string{}
	for r, err := range w.log.ReadAll(context.Background(), eventlog.Start) {
		if err != nil {
			panic(err)
		}
		streams[r.Stream] = append(streams[r.Stream], r.Type+string(times.ReplaceAll(r.Data, nil)))
	}
	names := make([]string, 0, len(streams))
	for name := range streams {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintln(&b, name, streams[name])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.ids {
		fmt.Fprintln(&b, w.left[id])
	}
	for _, a := range w.actors {
		waits := ""
		if a.waiting != nil && !a.dead {
			waits = a.waiting.label
		}
		if a.dead {
			fmt.Fprintln(&b, "dead")
			continue
		}
		fmt.Fprintln(&b, a.done, waits, a.seen.String())
	}
	fmt.Fprintln(&b, w.spent)
	sum := sha256.Sum256([]byte(b.String()))
	copy(s[:], sum[:])
	return s
}

// nickname is a stream's name for people.
func (w *world) nickname(stream string) string {
	if id, ok := events.WithdrawalOfStream(strings.Replace(stream, "record-", "withdrawal-", 1)); ok {
		if i := slices.Index(w.ids, id); i >= 0 {
			return fmt.Sprintf("W%d", i)
		}
		return "a withdrawal"
	}
	for _, key := range []events.RequestKey{"K1", "K2", "K3", "K4", "K5", "K6"} {
		if key.Stream(events.DefaultTenant) == stream {
			return string(key)
		}
	}
	return stream
}
