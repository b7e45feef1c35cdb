package model_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/internal/model"
	"holdfast/rail"
	"holdfast/submissions"
)

// What a concurrent history has: so many callers, each with so many calls, on two groups
// of withdrawals and keys that no call ties together, through ledgers of which the last
// one's clock is a day ahead: for it, every attempt is long over.
const (
	callers    = 4
	calls      = 14
	groups     = 2
	sendFor    = time.Hour
	commonTime = 10_000 * time.Hour
)

func clocks() []time.Duration {
	return []time.Duration{commonTime, commonTime, commonTime + 24*time.Hour}
}

// kind is a kind of log to make concurrent histories on.
type kind struct {
	name string
	open func(t *testing.T) eventlog.Log
	// wrap, if set, makes of it what the ledgers are given.
	wrap func(eventlog.Log, *rand.Rand) eventlog.Log
	// apart says that several streams are not committed together, so that a key is
	// reserved for a moment before it holds anything.
	apart bool
	// patience is how long the answer of an append is waited for; 0 is the ledger's own,
	// for logs on which none loses its answer for good.
	patience time.Duration
	// slow says that a tenth of the histories has to do.
	slow bool
}

// recorder makes a history: what was called, when, and what was answered.
type recorder struct {
	clock atomic.Int64 // counts calls and returns; no two are at the same time
	mu    sync.Mutex
	all   []porcupine.Operation
}

func (r *recorder) now() int64 { return r.clock.Add(1) }

// forever is when a call returns of which it is not known what it did.
const forever = int64(1) << 40

// add adds a call to the history. What does not know what it did may do it at any time.
func (r *recorder) add(caller int, c model.Command, call, back int64, a model.Answer, open bool) {
	if open {
		a, back = model.Answer{Code: anything}, forever
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if open {
		caller = callers + len(r.all) // it overlaps what the caller does next
	}
	r.all = append(r.all, porcupine.Operation{ClientId: caller, Input: checked{Command: c}, Call: call, Output: a, Return: back})
}

// anything is the code of an answer that is not known.
const anything = "not known"

// concurrent makes one history: the same seed makes the same calls, with the same answers
// of the rail. Each caller has ledgers of its own, made by wrap.
func concurrent(t *testing.T, k kind, seed uint64, wrap func(*submissions.Ledger) ledger) []porcupine.Operation {
	t.Helper()
	log := k.open(t)
	defer func() { log.Close() }() // as it is at the end
	setUp(t, log)
	if k.wrap != nil {
		log = k.wrap(log, rand.New(rand.NewPCG(seed, 1)))
	}
	var ledgers []ledger
	for i, now := range clocks() {
		o := &submissions.Options{
			Clock: func() time.Time { return epoch().Add(now) }, ClockMargin: margin, Patience: k.patience,
		}
		jitter := rand.New(rand.NewPCG(seed, uint64(100+i)))
		l, err := submissions.New(&yielding{Log: log, rng: jitter}, o)
		if err != nil {
			t.Fatal(err)
		}
		ledgers = append(ledgers, wrap(l))
	}
	var r recorder
	var wg sync.WaitGroup
	start := make(chan struct{})
	for caller := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(1000+caller)))
			<-start
			for range calls {
				process := rng.IntN(len(ledgers))
				r.call(caller, ledgers[process], clocks()[process], rng)
			}
		})
	}
	close(start)
	wg.Wait()
	return r.all
}

// start is the model as it is before a concurrent history: everything is requested.
func start() *model.Ledger {
	l := model.New(margin)
	for _, c := range requests() {
		l.Do(c)
	}
	return l
}

func requests() (all []model.Command) {
	for g := range groups {
		for i := range 2 {
			reference := fmt.Sprintf("order-%d-%d", g, i)
			all = append(all, model.Command{
				Verb: model.Request, Tenant: "default", Withdrawal: mint("default", reference), Reference: reference, Now: commonTime,
				Details: model.Details{Amount: fmt.Sprint(10 + i), Currency: "EUR", Destination: "DE-1"},
			})
		}
	}
	return all
}

func setUp(t *testing.T, log eventlog.Log) {
	t.Helper()
	l, err := submissions.New(log, &submissions.Options{Clock: func() time.Time { return epoch().Add(commonTime) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range requests() {
		if a, _ := perform(t.Context(), l, c, nothing, nil); a.Code != "" {
			t.Fatalf("set up: %+v", a)
		}
	}
}

// call makes one random call and records it. A submission that calls the rail is two
// calls: until the rail is called, when the claim has to be there, and from the rail's
// answer on.
func (r *recorder) call(caller int, l ledger, now time.Duration, rng *rand.Rand) {
	g := rng.IntN(groups)
	c := model.Command{
		Tenant: "default", Now: now, Key: fmt.Sprintf("K%d-%d", g, rng.IntN(3)),
		Withdrawal: mint("default", fmt.Sprintf("order-%d-%d", g, rng.IntN(2))),
	}
	how := ways()[rng.IntN(len(ways()))]
	if how == "cancelled" {
		how = "error"
	}
	pauses := rng.IntN(200)
	switch n := rng.IntN(20); {
	case n < 9:
		c.Verb, c.Deadline = model.Submit, now+sendFor
	case n < 11:
		// It names the withdrawal: by its key alone, it is a lookup and then a resolve,
		// between which the claim may be released.
		c.Verb, c.Result = model.Resolve, "failed"
		if rng.IntN(2) == 0 {
			c.Result, c.Reference = "sent", "tx-1"
		}
		r.look(caller, l, &c)
	case n < 15:
		c.Verb, c.Withdrawal = model.Release, ""
		r.look(caller, l, &c)
	case n < 17:
		c.Verb, c.Withdrawal = model.Outcome, ""
	default:
		c.Verb, c.Key = model.ClaimedBy, ""
	}
	report := c
	report.Verb, report.Attempt = model.Report, 0
	called := r.now()
	a, open := perform(context.Background(), l, c, nothing, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		claimed := model.Answer{Attempt: p.Attempt}
		r.add(caller, c, called, r.now(), claimed, false)
		if report.Attempt > 0 {
			r.add(caller, c, r.now(), r.now(), model.Answer{Code: "the rail is called again"}, false)
		}
		for range pauses {
			runtime.Gosched()
		}
		report.Attempt, report.Reference = p.Attempt, fmt.Sprintf("tx-%d", p.Attempt)
		var answer func(context.Context) (rail.Receipt, error)
		report.Result, answer = answering(how, report.Reference, "text/plain", how)
		report.MediaType, report.Body, report.Deadline = "text/plain", how, 0
		called = r.now()
		return answer(ctx)
	})
	if report.Attempt > 0 {
		c = report
	}
	r.add(caller, c, called, r.now(), a, open)
}

// look makes and records the look at a withdrawal, or at what a key holds, that a person
// takes before they say something about it.
func (r *recorder) look(caller int, l ledger, word *model.Command) {
	c := model.Command{Verb: model.ClaimedBy, Tenant: word.Tenant, Withdrawal: word.Withdrawal, Now: word.Now}
	if c.Withdrawal == "" {
		c.Verb, c.Key = model.Outcome, word.Key
	}
	called := r.now()
	a, open := perform(context.Background(), l, c, nothing, nil)
	r.add(caller, c, called, r.now(), a, open)
	word.Seen = max(1, a.Events)
}

// yielding is a log around whose calls others come in, at random.
type yielding struct {
	eventlog.Log
	mu  sync.Mutex
	rng *rand.Rand
}

func (y *yielding) yield() {
	y.mu.Lock()
	n := y.rng.IntN(30)
	y.mu.Unlock()
	for range n {
		runtime.Gosched()
	}
}

func (y *yielding) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	y.yield()
	defer y.yield()
	return y.Log.Append(ctx, appends...)
}

// lossy is a log one in so many of whose appends, and every retry of it, is answered by
// nothing at all; it is in the log or it is not. Where the answer is lost once only, a
// retry gets the answer that the first try would have had.
type lossy struct {
	eventlog.Log
	once   bool
	mu     sync.Mutex
	rng    *rand.Rand
	lost   map[uuid.UUID]bool
	closed bool
}

const oneIn = 8

func (l *lossy) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return 0, eventlog.ErrClosed
	}
	id := appends[len(appends)-1].Events[0].ID
	lost, again := l.lost[id]
	switch {
	case !again:
		lost = l.rng.IntN(oneIn) == 0
		l.lost[id] = lost
	case l.once:
		lost = false
	}
	done := lost && !again && l.rng.IntN(2) == 0
	l.mu.Unlock()
	if !lost {
		return l.Log.Append(ctx, appends...)
	}
	if done {
		if _, err := l.Log.Append(ctx, appends...); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("%w: lost", eventlog.ErrUnknownResult)
}

func (l *lossy) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.Log.Close()
}
