package workload

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"holdfast/eventlog"
	"holdfast/events"
)

// open is how many withdrawals are under way at any time, and batch how many of them go
// on in one append call.
const (
	open  = 200
	batch = eventlog.MaxAppends / 2
)

// Workload makes one append call after another.
type Workload struct {
	random  *rand.Rand
	codec   *events.Codec
	seed    uint64
	now     time.Time
	started int
	events  int
	open    []*life
}

// New returns a workload. Those of two seeds can go into one log.
func New(seed uint64) *Workload {
	return &Workload{
		random: rand.New(rand.NewPCG(seed, 1)), codec: events.NewCodec(), seed: seed,
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// Events returns how many events the calls so far have had.
func (w *Workload) Events() int { return w.events }

// Next returns the next append call. Its clock goes on by some 50 ms.
func (w *Workload) Next() []eventlog.StreamAppend {
	for len(w.open) < open {
		w.open = append(w.open, w.start())
	}
	// The first ones of a shuffled list, each once: no stream is twice in one call.
	for i := range batch {
		j := i + w.random.IntN(len(w.open)-i)
		w.open[i], w.open[j] = w.open[j], w.open[i]
	}
	var call []eventlog.StreamAppend
	alive := w.open[:0]
	for i, l := range w.open {
		if i < batch {
			w.now = w.now.Add(time.Duration(1+w.random.IntN(12_000)) * time.Microsecond)
			call = append(call, l.step(w)...)
		}
		if len(l.steps) > 0 {
			alive = append(alive, l)
		}
	}
	clear(w.open[len(alive):])
	w.open = alive
	for _, a := range call {
		w.events += len(a.Events)
	}
	return call
}

// Fill appends calls until at least n events were written.
func (w *Workload) Fill(ctx context.Context, log eventlog.Log, n int) error {
	for upTo := w.events + n; w.events < upTo; {
		if _, err := log.Append(ctx, w.Next()...); err != nil {
			return fmt.Errorf("fill the log: %w", err)
		}
	}
	return nil
}

// start begins the life of a withdrawal.
func (w *Workload) start() *life {
	w.started++
	l := &life{
		number: w.started,
		details: events.WithdrawalRequested{
			Tenant: events.DefaultTenant, Account: "account-" + strconv.Itoa(w.random.IntN(1000)),
			Reference: fmt.Sprintf("order-%d-%d", w.seed, w.started),
			Currency:  pick(w.random, "EUR", "EUR", "USD", "BTC"), Destination: fmt.Sprintf("DE%020d", w.random.Uint64()),
		},
		steps: lives[w.random.IntN(len(lives))],
	}
	if w.random.IntN(20) == 0 {
		l.details.Tenant = "other"
	}
	amount, err := events.ParseAmount(fmt.Sprintf("%d.%02d", 1+w.random.IntN(5000), w.random.IntN(100)))
	if err != nil {
		panic("workload: " + err.Error())
	}
	l.details.Amount = amount
	l.details.Withdrawal = events.MintWithdrawalID(l.details.Tenant, l.details.Account, l.details.Reference)
	l.withdrawal = w.codec.Chain(l.details.Withdrawal.Stream())
	return l
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// id returns an event id, of version 4.
func (w *Workload) id() (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], w.random.Uint64())
	binary.BigEndian.PutUint64(id[8:], w.random.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}
