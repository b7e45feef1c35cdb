package transfer

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// filled returns a log in memory with some lives in it.
func filled(t *testing.T) *memory.Log {
	t.Helper()
	l := memory.New()
	fill(t, l, events.DefaultTenant, 1)
	return l
}

func copyOf(t *testing.T, from, to eventlog.Log, cutOver bool) (Report, error) {
	t.Helper()
	return Copy(t.Context(), at(from, "from"), at(to, "to"), atOnce(Options{CutOver: cutOver}))
}

func copied(t *testing.T, from, to eventlog.Log, cutOver bool) Report {
	t.Helper()
	r, err := copyOf(t, from, to, cutOver)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func size(t *testing.T, log eventlog.Headed) eventlog.Position {
	t.Helper()
	p, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRefused: what cannot be copied is refused before anything is written.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		cutOver    bool
		logs       func(t *testing.T) (from, to *memory.Log)
	}{
		{"the same log", "the source itself", true, func(t *testing.T) (from, to *memory.Log) {
			l := filled(t)
			return l, l
		}},
		{"the same log, which was left", "the source itself", false, func(t *testing.T) (from, to *memory.Log) {
			l := filled(t)
			copied(t, l, memory.New(), true)
			return l, l
		}},
		{"an empty source", "no events", false, func(t *testing.T) (from, to *memory.Log) { return memory.New(), memory.New() }},
		{"a ledger of its own", "a ledger of its own: it has stream \"withdrawal-", true, func(t *testing.T) (from, to *memory.Log) { return filled(t), filled(t) }},
		{"a target that a copy has made a ledger", "by an earlier copy", true, func(t *testing.T) (from, to *memory.Log) {
			to = memory.New()
			copied(t, filled(t), to, true)
			return filled(t), to
		}},
		{"a target that is copied into from another", "from another log: from", false, func(t *testing.T) (from, to *memory.Log) {
			to = memory.New()
			copied(t, filled(t), to, false)
			return filled(t), to
		}},
		{"a target that was another ledger", "was another ledger", false, func(t *testing.T) (from, to *memory.Log) {
			to = filled(t)
			copied(t, to, memory.New(), true)
			return filled(t), to
		}},
		{"a source that is copied into", "the source is being copied into", false, func(t *testing.T) (from, to *memory.Log) {
			from = memory.New()
			copied(t, filled(t), from, false)
			return from, memory.New()
		}},
		{"a source that was left for another", "the ledger has moved from the source to", true, func(t *testing.T) (from, to *memory.Log) {
			from = filled(t)
			copied(t, from, memory.New(), true)
			return from, memory.New()
		}},
		{"a source that was left, into a copy", "the ledger has moved from the source to", false, func(t *testing.T) (from, to *memory.Log) {
			from = filled(t)
			copied(t, from, memory.New(), true)
			return from, memory.New()
		}},
		{"a target that the ledger has left for a third", "the ledger has moved from the source to", true, func(t *testing.T) (from, to *memory.Log) {
			from, to = filled(t), memory.New()
			copied(t, from, to, true)
			copied(t, to, memory.New(), true)
			return from, to
		}},
		{"a copy that is being given up", "is being given up", true, func(t *testing.T) (from, to *memory.Log) {
			from, to = filled(t), memory.New()
			stopped := func(kind events.Event, log eventlog.Log) *limited {
				return &limited{Log: log, err: errors.New("cut off"), refuses: func(all []eventlog.StreamAppend) bool { return all[0].Events[0].Type == kind.Type() }}
			}
			if _, err := copyOf(t, from, stopped(events.CopyCompleted{}, to), true); err == nil {
				t.Fatal("the copy was to be cut off")
			}
			if _, err := TakeBack(t.Context(), at(stopped(events.LedgerKept{}, from), "from"), at(to, "to"), atOnce(Options{})); err == nil {
				t.Fatal("giving up was to be cut off")
			}
			return from, to
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from, to := tt.logs(t)
			before := [2]eventlog.Position{size(t, from), size(t, to)}
			_, err := copyOf(t, from, to, tt.cutOver)
			var refused *Refused
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) || refused.Try == "" {
				t.Errorf("got %v, want a refusal that says %q", err, tt.want)
			}
			if after := [2]eventlog.Position{size(t, from), size(t, to)}; after != before {
				t.Errorf("the logs have %v events, and had %v", after, before)
			}
		})
	}
}

// TestUnsound: a damaged source is not copied.
func TestUnsound(t *testing.T) {
	from, to := filled(t), memory.New()
	var some eventlog.Recorded
	for r := range from.ReadAll(t.Context(), eventlog.Start) {
		if some = r; r.Revision == 1 {
			break
		}
	}
	from.Remove(some.Stream, some.Revision)
	_, err := copyOf(t, from, to, true)
	var unsound *Unsound
	if !errors.As(err, &unsound) || unsound.Target || !strings.Contains(err.Error(), some.Stream) {
		t.Errorf("got %v, want that %s is damaged", err, some.Stream)
	}
	if n := size(t, to); n != 0 {
		t.Errorf("the target has %d events", n)
	}
}

// TestDiffers: a target that holds something else is never made a ledger, and where it
// differs is named.
func TestDiffers(t *testing.T) {
	foreign := eventlog.Event{ID: uuid.New(), Type: "Foreign"}
	for _, tt := range []struct {
		name, want string
		spoil      func(t *testing.T, from, to *memory.Log, stream string) (where string)
	}{
		{"another event", "the target has another event there than the source", func(t *testing.T, _, to *memory.Log, stream string) string {
			to.Remove(stream, 0)
			return stream // which then has none, so anything can be put there
		}},
		{"a foreign stream", "the target has the event, and the source does not", func(t *testing.T, _, to *memory.Log, _ string) string { return "foreign" }},
		{"an event too many", "the target has the event, and the source does not", func(t *testing.T, from, to *memory.Log, stream string) string { return stream }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from := filled(t)
			to := memory.New()
			copied(t, from, to, false)
			var stream string
			n := uint64(0)
			for r := range from.ReadAll(t.Context(), eventlog.Start) {
				if r.Revision == 0 && strings.HasPrefix(r.Stream, "withdrawal-") {
					stream = r.Stream
				}
			}
			for range from.ReadStream(t.Context(), stream, 0) {
				n++
			}
			where := tt.spoil(t, from, to, stream)
			target := &spoilt{Log: to, foreign: eventlog.Recorded{Event: foreign, Stream: where}}
			if tt.name == "an event too many" {
				target.foreign.Revision = n
			}
			_, err := copyOf(t, from, target, true)
			var differs *Differs
			if !errors.As(err, &differs) || differs.Stream != where || differs.Revision != target.foreign.Revision || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want that %s differs: %s", err, where, tt.want)
			}
			if _, err := ledger(t, from).Outcome(t.Context(), "0-0-a"); err != nil {
				t.Errorf("the source is no ledger any more: %v", err)
			}
			if _, err := ledger(t, to).Outcome(t.Context(), "0-0-a"); err == nil {
				t.Error("the target is a ledger")
			}
		})
	}
}

// spoilt is a log that has one more event than it has.
type spoilt struct {
	*memory.Log
	foreign eventlog.Recorded
}

func (l *spoilt) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		if !yield(l.foreign, nil) {
			return
		}
		l.Log.ReadAll(ctx, after)(yield)
	}
}

// TestMovedOn: what comes while a log is copied is told, and a ledger is not moved from
// under an attempt that may be running, nor from under somebody who goes on writing.
func TestMovedOn(t *testing.T) {
	from, to := filled(t), memory.New()
	l := ledger(t, from)
	w, err := l.Request(t.Context(), submissions.Request{By: by, Account: "alice", Reference: "slow", Amount: "1", Currency: "EUR", Destination: "DE89"})
	if err != nil {
		t.Fatal(err)
	}
	submitting, answer, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		l.Submit(t.Context(), "slow", w.ID, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
			close(submitting)
			<-answer
			return sent(ctx, p)
		}, nil)
	}()
	<-submitting
	_, err = copyOf(t, from, to, true)
	var busy *Busy
	if !errors.As(err, &busy) || busy.Sealed || !strings.Contains(err.Error(), `key "slow" may be sending`) {
		t.Errorf("got %v, want that an attempt may be running", err)
	}
	if _, err := l.Outcome(t.Context(), "0-0-a"); err != nil {
		t.Errorf("the source is no ledger any more: %v", err)
	}

	// The answer comes while the copy is at it.
	moved, err := Copy(t.Context(), at(from, "from"), at(to, "to"), atOnce(Options{Progress: func(s Stage, n uint64) {
		if s == Asking && n == 0 {
			close(answer)
			<-done
		}
	}}))
	if err != nil || !moved.MovedOn {
		t.Errorf("%+v, %v; want that the source has moved on", moved, err)
	}
	if r := copied(t, from, to, true); r.MovedOn || !r.CutOver {
		t.Errorf("%+v", r)
	}

	// A process that knows nothing of custody writes to the source that was left.
	from, to = filled(t), memory.New()
	n := 0
	_, err = Copy(t.Context(), at(from, "from"), at(to, "to"), atOnce(Options{CutOver: true, Progress: func(s Stage, events uint64) {
		if s == Asking && events == 0 {
			n++
			rogue := memory.New()
			if err := live(t.Context(), ledger(t, rogue), "rogue-"+strings.Repeat("x", n)); err != nil {
				t.Error(err)
			}
			for stream, all := range contents(t, rogue) {
				if _, err := from.Append(t.Context(), eventlog.StreamAppend{Stream: stream, Events: all}); err != nil {
					t.Error(err)
				}
			}
		}
	}}))
	if !errors.As(err, &busy) || !busy.Sealed || !strings.Contains(err.Error(), "stop every process") {
		t.Errorf("got %v, want that something still writes", err)
	}
	if _, err := ledger(t, to).Outcome(t.Context(), "0-0-a"); err == nil {
		t.Error("the target is a ledger")
	}
}

// TestTakeBack: a move that got stuck after the source was sealed can be given up, and made
// again later.
func TestTakeBack(t *testing.T) {
	from, to := filled(t), memory.New()
	cut := errors.New("cut off")
	_, err := copyOf(t, from, &limited{Log: to, err: cut, refuses: func(all []eventlog.StreamAppend) bool {
		return all[0].Events[0].Type == events.CopyCompleted{}.Type()
	}}, true)
	if !errors.Is(err, cut) {
		t.Fatalf("got %v", err)
	}
	pays := func(l eventlog.Log) bool {
		_, err := ledger(t, l).Outcome(t.Context(), "0-0-a")
		return err == nil
	}
	if pays(from) || pays(to) {
		t.Fatalf("the source pays %t, the target %t; want neither", pays(from), pays(to))
	}
	for range 2 { // it can be repeated
		if _, err := TakeBack(t.Context(), at(from, "from"), at(to, "to"), atOnce(Options{})); err != nil {
			t.Fatal(err)
		}
		if !pays(from) || pays(to) {
			t.Fatalf("the source pays %t, the target %t; want the source", pays(from), pays(to))
		}
	}
	if r := copied(t, from, to, true); !r.CutOver || pays(from) || !pays(to) {
		t.Errorf("%+v", r)
	}
	var refused *Refused
	if _, err := TakeBack(t.Context(), at(from, "from"), at(to, "to"), atOnce(Options{})); !errors.As(err, &refused) || pays(from) {
		t.Errorf("a completed move was taken back: %v", err)
	}
	if _, err := TakeBack(t.Context(), at(filled(t), "from"), at(memory.New(), "to"), atOnce(Options{})); !errors.As(err, &refused) {
		t.Errorf("a copy that there is not was given up: %v", err)
	}
	other := memory.New()
	copied(t, filled(t), other, false)
	if _, err := TakeBack(t.Context(), at(filled(t), "from"), at(other, "to"), atOnce(Options{})); !errors.As(err, &refused) {
		t.Errorf("another's copy was given up: %v", err)
	}
}

// limited is a log that does not take some appends.
type limited struct {
	eventlog.Log
	refuses func([]eventlog.StreamAppend) bool
	err     error
}

func (l *limited) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	if l.refuses(appends) {
		return 0, l.err
	}
	return l.Log.Append(ctx, slices.Clone(appends)...)
}

// forgetful is a log that has appended, and does not say so.
type forgetful struct {
	eventlog.Log
	forgets func() bool
}

func (l *forgetful) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	p, err := l.Log.Append(ctx, slices.Clone(appends)...)
	if err == nil && l.forgets() {
		return 0, eventlog.ErrUnknownResult
	}
	return p, err
}
