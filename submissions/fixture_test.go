package submissions_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

var ann = submissions.By{Actor: "ann"}

// fixture is a ledger on a log of its own, and a rail that counts what left.
type fixture struct {
	*submissions.Ledger
	log  eventlog.Log
	bank *bank
}

func newFixture(t *testing.T, o *submissions.Options) *fixture {
	t.Helper()
	return fixtureOn(t, memory.New(), o)
}

func fixtureOn(t *testing.T, log eventlog.Log, o *submissions.Options) *fixture {
	t.Helper()
	return &fixture{Ledger: newLedger(t, log, o), log: log, bank: &bank{}}
}

func newLedger(t *testing.T, log eventlog.Log, o *submissions.Options) *submissions.Ledger {
	t.Helper()
	ledger, err := submissions.New(log, o)
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

// request records a withdrawal under a reference.
func (f *fixture) request(t *testing.T, reference string) events.WithdrawalID {
	t.Helper()
	w, err := f.Request(t.Context(), order(reference))
	if err != nil {
		t.Fatal(err)
	}
	return w.ID
}

func order(reference string) submissions.Request {
	return submissions.Request{
		Account: "alice", Reference: reference, Amount: "10.25", Currency: "EUR", Destination: "secret-" + reference,
	}
}

// bank is a rail that remembers every payment that left. It honours no token, so that a
// second send shows.
type bank struct {
	mu   sync.Mutex
	left []rail.Payment
}

func (b *bank) Send(_ context.Context, p rail.Payment) (rail.Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = append(b.left, p)
	reference := "tx-" + string(rune('a'+len(b.left)-1))
	return rail.Receipt{Reference: reference, Response: events.Response{MediaType: "text/plain", Body: []byte("sent as " + reference)}}, nil
}

func (b *bank) sends() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.left)
}

// refused checks that an error is a refusal with a code.
func refused(t *testing.T, err error, code submissions.Code) *submissions.Refusal {
	t.Helper()
	var r *submissions.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal with code %s", err, code)
	}
	if r.Code != code {
		t.Fatalf("got %v, want code %s", err, code)
	}
	if r.Message == "" {
		t.Errorf("the refusal %s says nothing to a person", code)
	}
	return r
}

// release is a person who looks at a key and then releases it.
func release(ctx context.Context, l *submissions.Ledger, key events.RequestKey) (submissions.Status, error) {
	return l.Release(ctx, key, submissions.Release{By: ann, Reason: "looked", Evidence: "statement 7", Seen: look(ctx, l, key)})
}

// resolve is a person who looks at a key and then resolves it.
func resolve(ctx context.Context, l *submissions.Ledger, key events.RequestKey, with submissions.Resolution) (submissions.Outcome, error) {
	with.Seen = look(ctx, l, key)
	return l.Resolve(ctx, key, with)
}

// look returns how many events a person sees of the withdrawal that a key holds.
func look(ctx context.Context, l *submissions.Ledger, key events.RequestKey) uint64 {
	s, _ := l.Outcome(ctx, key)
	return max(1, s.Events)
}

// taken returns a check that a submit or resolve went through.
func taken(t *testing.T) func(submissions.Outcome, error) submissions.Outcome {
	return func(o submissions.Outcome, err error) submissions.Outcome {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
}

// types are the types of a stream's events.
func types(t *testing.T, log eventlog.Log, stream string) []string {
	t.Helper()
	var all []string
	for r, err := range log.ReadStream(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Type)
	}
	return all
}

// size is the number of events in a log.
func size(t *testing.T, log eventlog.Log) int {
	t.Helper()
	n := 0
	for _, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// hooked is a log whose appends can be interfered with.
type hooked struct {
	eventlog.Log
	// before is called with the types of the events of each append; an error it
	// returns is the append's, and nothing is written.
	before func(types []string) error
	// after is called after an append that succeeded; an error it returns is what the
	// caller is told.
	after func(types []string) error
	// apart applies several stream appends one after another, as a cluster does.
	apart bool
}

func (h *hooked) Append(ctx context.Context, appends ...eventlog.StreamAppend) (at eventlog.Position, err error) {
	batches := [][]eventlog.StreamAppend{appends}
	if h.apart {
		batches = slices.Collect(slices.Chunk(appends, 1))
	}
	for _, batch := range batches {
		var types []string
		for _, a := range batch {
			for _, e := range a.Events {
				types = append(types, e.Type)
			}
		}
		if h.before != nil {
			if err := h.before(types); err != nil {
				return 0, err
			}
		}
		if at, err = h.Log.Append(ctx, batch...); err != nil {
			return 0, err
		}
		if h.after != nil {
			if err := h.after(types); err != nil {
				return 0, err
			}
		}
	}
	return at, nil
}

// failing returns a hook that fails, the first n times, an append that has an event of a
// type.
func failing(err error, eventType string, n int) func([]string) error {
	return func(types []string) error {
		if n > 0 && slices.Contains(types, eventType) {
			n--
			return err
		}
		return nil
	}
}

// put appends events to a stream as they are, past every decision.
func put(t *testing.T, log eventlog.Log, stream string, history ...events.Event) {
	t.Helper()
	chain := events.NewCodec().Chain(stream)
	for r, err := range log.ReadStream(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := chain.Read(events.Stored{Stream: r.Stream, Revision: r.Revision, ID: r.ID, Type: r.Type, Data: r.Data, Metadata: r.Metadata}); err != nil {
			t.Fatal(err)
		}
	}
	a := eventlog.StreamAppend{Stream: stream, At: chain.Next()}
	for i, e := range history {
		s, _, err := chain.Append([16]byte{1, byte(i)}, e, events.Metadata{RecordedAt: events.At(someTime), Actor: "test"})
		if err != nil {
			t.Fatal(err)
		}
		a.Events = append(a.Events, eventlog.Event{ID: s.ID, Type: s.Type, Data: s.Data, Metadata: s.Metadata})
	}
	if _, err := log.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// spoiled is a log in which events of one stream read differently.
type spoiled struct {
	eventlog.Log
	stream string
	spoil  func(eventlog.Recorded) (eventlog.Recorded, bool)
}

func (s *spoiled) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return s.through(s.Log.ReadStream(ctx, stream, from))
}

func (s *spoiled) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return s.through(s.Log.ReadAll(ctx, after))
}

func (s *spoiled) through(seq iter.Seq2[eventlog.Recorded, error]) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range seq {
			keep := true
			if err == nil && r.Stream == s.stream {
				r, keep = s.spoil(r)
			}
			if keep && !yield(r, err) {
				return
			}
		}
	}
}

func containsText(err error, text string) bool {
	return err != nil && strings.Contains(err.Error(), text)
}

// holders are the keys that a list of statuses names, in its order.
func holders(list []submissions.Status) []events.RequestKey {
	var keys []events.RequestKey
	for _, s := range list {
		keys = append(keys, s.Holder())
	}
	return keys
}
