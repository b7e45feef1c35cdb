package projections

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// remembered is how many withdrawals one worker remembers. The events of a withdrawal lie
// close together; what was forgotten is read again.
const remembered = 1 << 12

// Poison is the error of an event that cannot be understood, or that cannot follow the
// ones before it. The projection stops there, and goes on once this build knows the event
// or the log was put right; it is never passed over (D3).
type Poison struct {
	Stream   string
	Revision uint64
	Position eventlog.Position
	// Err is usually an [*events.Damage] or an [*eventlog.Damaged].
	Err error
}

func (p *Poison) Error() string {
	return fmt.Sprintf("projections stop at position %d, stream %s, revision %d: %v", p.Position, p.Stream, p.Revision, p.Err)
}

// Unwrap returns the error with which the event was refused.
func (p *Poison) Unwrap() error { return p.Err }

// folder makes steps out of events, on all processors: each stream is one worker's. It
// holds nothing that is not in the log: withdrawals that it does not remember it reads.
type folder struct {
	log     eventlog.Log
	codec   *events.Codec
	seed    maphash.Seed
	workers []*lru.Cache[string, folded]
}

// folded is a withdrawal as it was after its last event so far.
type folded struct {
	chain events.Chain
	state aggregate.Withdrawal
}

func newFolder(log eventlog.Log) *folder {
	f := &folder{log: log, codec: events.NewCodec(), seed: maphash.MakeSeed()}
	for range runtime.GOMAXPROCS(0) {
		cache, err := lru.New[string, folded](remembered)
		if err != nil {
			panic("projections: a cache of constant size: " + err.Error())
		}
		f.workers = append(f.workers, cache)
	}
	return f
}

// fold makes a step of each event; nil for one that is not a withdrawal's. The error of
// an event that cannot be understood is a [*Poison]; steps then has those before it.
func (f *folder) fold(ctx context.Context, recorded []eventlog.Recorded) (steps []*Step, err error) {
	steps = make([]*Step, len(recorded))
	failed := make([]error, len(recorded))
	var wg sync.WaitGroup
	for w, cache := range f.workers {
		wg.Go(func() {
			for i := range recorded {
				if maphash.String(f.seed, recorded[i].Stream)%uint64(len(f.workers)) != uint64(w) {
					continue
				}
				if steps[i], failed[i] = f.step(ctx, cache, &recorded[i]); failed[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for i, err := range failed {
		if err != nil {
			return steps[:i], err
		}
	}
	return steps, nil
}

func (f *folder) step(ctx context.Context, cache *lru.Cache[string, folded], r *eventlog.Recorded) (*Step, error) {
	poison := func(err error) error {
		var unreadable *events.Damage
		var missing *eventlog.Damaged
		if errors.As(err, &unreadable) || errors.As(err, &missing) {
			return &Poison{Stream: r.Stream, Revision: r.Revision, Position: r.Position, Err: err}
		}
		return err
	}
	id, ours := events.WithdrawalOfStream(r.Stream)
	if !ours {
		// What no projection shows still has to be understood.
		if r.Revision == 0 {
			chain := f.codec.Chain(r.Stream)
			_, err := chain.Read(stored(r))
			return nil, poison(err)
		}
		_, err := f.prefix(ctx, folded{chain: f.codec.Chain(r.Stream)}, r.Revision+1, nil)
		return nil, poison(err)
	}
	before, known := cache.Get(r.Stream)
	if !known || before.chain.Next() > r.Revision {
		before = folded{chain: f.codec.Chain(r.Stream)}
	}
	before, err := f.prefix(ctx, before, r.Revision, (*folded).apply)
	if err != nil {
		return nil, poison(err)
	}
	after := before
	e, err := after.chain.Read(stored(r))
	if err == nil {
		err = after.apply(e)
	}
	if err != nil {
		return nil, poison(err)
	}
	cache.Add(r.Stream, after)
	requested, _, _ := after.state.Requested()
	return &Step{Recorded: e, Position: r.Position, Withdrawal: id, Tenant: requested.Tenant, Before: before.state, After: after.state}, nil
}

// prefix reads a stream on, up to a revision.
func (f *folder) prefix(ctx context.Context, from folded, upTo uint64, apply func(*folded, events.Recorded) error) (folded, error) {
	if from.chain.Next() == upTo {
		return from, nil
	}
	for r, err := range f.log.ReadStream(ctx, from.chain.Stream(), from.chain.Next()) {
		if err != nil {
			return from, err
		}
		e, err := from.chain.Read(stored(&r))
		if err == nil && apply != nil {
			err = apply(&from, e)
		}
		if err != nil {
			return from, err
		}
		if from.chain.Next() == upTo {
			return from, nil
		}
	}
	return from, eventlog.Missing(from.chain.Stream(), from.chain.Next())
}

func (f *folded) apply(e events.Recorded) error {
	next, err := f.state.Apply(e)
	if err != nil {
		return &events.Damage{Stream: e.Stream, Revision: e.Revision, Kind: events.FaultOrder, Reason: err.Error()}
	}
	f.state = next
	return nil
}

func stored(r *eventlog.Recorded) events.Stored {
	return events.Stored{Stream: r.Stream, Revision: r.Revision, ID: r.ID, Type: r.Type, Data: r.Data, Metadata: r.Metadata}
}
