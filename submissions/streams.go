package submissions

import (
	"context"
	"errors"

	lru "github.com/hashicorp/golang-lru/v2"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// What is kept in memory of streams that were folded: how many of each kind, and how
// many bytes of events a stream may have to be among them. It bounds memory, and changes
// no answer; a stream with more, such as one with a long answer of a rail, is read whole by
// every command.
const (
	remembered    = 4096
	rememberBytes = 8 << 10
)

// streams reads streams and folds them. History never changes, so what was folded once
// is remembered; the tail is read from the log every time, and whatever is decided is
// decided at the revision that the log had then. A remembered stream that turns out to
// be another one than the log's only ever costs a conflict: see forget.
type streams struct {
	log         eventlog.Log
	codec       *events.Codec
	withdrawals *lru.Cache[string, folded[aggregate.Withdrawal]]
	keys        *lru.Cache[string, folded[aggregate.RequestKey]]
}

// folded is a stream up to some revision: its state, and its chain to go on with.
type folded[S state[S]] struct {
	state S
	chain events.Chain
	bytes int // of the events that were folded
}

type state[S any] interface {
	Apply(events.Recorded) (S, error)
}

func newStreams(log eventlog.Log, codec *events.Codec) *streams {
	withdrawals, err := lru.New[string, folded[aggregate.Withdrawal]](remembered)
	keys, err2 := lru.New[string, folded[aggregate.RequestKey]](remembered)
	if err := errors.Join(err, err2); err != nil {
		panic("submissions: a cache of constant size: " + err.Error())
	}
	return &streams{log: log, codec: codec, withdrawals: withdrawals, keys: keys}
}

func (s *streams) withdrawal(ctx context.Context, id events.WithdrawalID) (folded[aggregate.Withdrawal], error) {
	return load(ctx, s, s.withdrawals, id.Stream())
}

func (s *streams) key(ctx context.Context, t events.Tenant, k events.RequestKey) (folded[aggregate.RequestKey], error) {
	return load(ctx, s, s.keys, k.Stream(t))
}

// forget drops what is remembered of a stream, so that the next load reads all of it.
func (s *streams) forget(stream string) {
	s.withdrawals.Remove(stream)
	s.keys.Remove(stream)
}

// load folds a stream to its head. A stream that is not sound is a damaged refusal
// (D5); a log that cannot be read, an unavailable one.
func load[S state[S]](ctx context.Context, s *streams, cache *lru.Cache[string, folded[S]], stream string) (folded[S], error) {
	f := recall(s, cache, stream)
	known := f.chain.Next()
	for stored, err := range s.log.ReadStream(ctx, stream, known) {
		if err == nil {
			_, err = f.read(stored)
		}
		if err != nil {
			s.forget(stream)
			return folded[S]{}, refusalOf(err)
		}
	}
	if f.chain.Next() != known {
		f.remember(cache)
	}
	return f, nil
}

// recall returns what is remembered of a stream: nothing at all, at least.
func recall[S state[S]](s *streams, cache *lru.Cache[string, folded[S]], stream string) folded[S] {
	f, ok := cache.Get(stream)
	if !ok {
		f.chain = s.codec.Chain(stream)
	}
	return f
}

func (f folded[S]) remember(cache *lru.Cache[string, folded[S]]) {
	if f.bytes <= rememberBytes {
		cache.Add(f.chain.Stream(), f)
	} else {
		cache.Remove(f.chain.Stream())
	}
}

// read decodes and folds the stream's next event.
func (f *folded[S]) read(stored eventlog.Recorded) (events.Recorded, error) {
	recorded, err := f.chain.Read(events.Stored{
		Stream: stored.Stream, Revision: stored.Revision, ID: stored.ID,
		Type: stored.Type, Data: stored.Data, Metadata: stored.Metadata,
	})
	if err != nil {
		return recorded, err
	}
	f.bytes += len(stored.Data) + len(stored.Metadata)
	return recorded, f.apply(recorded)
}

func (f *folded[S]) apply(recorded events.Recorded) error {
	next, err := f.state.Apply(recorded)
	if err != nil {
		return &events.Damage{Stream: recorded.Stream, Revision: recorded.Revision, Kind: events.FaultOrder, Reason: err.Error()}
	}
	f.state = next
	return nil
}
