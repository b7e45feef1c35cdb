package submissions_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// keep appends an event to a log's custody stream.
func keep(t *testing.T, log eventlog.Log, e events.Event) {
	t.Helper()
	_, chain, err := submissions.Custody(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	at := chain.Next()
	s, _, err := chain.Append(uuid.New(), e, events.Metadata{RecordedAt: events.At(time.Now()), Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, events.CustodyStream, at, eventlog.Event{ID: s.ID, Type: s.Type, Data: s.Data, Metadata: s.Metadata})
}

func add(t *testing.T, log eventlog.Log, stream string, at uint64, all ...eventlog.Event) {
	t.Helper()
	if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: stream, At: at, Events: all}); err != nil {
		t.Fatal(err)
	}
}

// copied appends the first events of a stream to another log.
func copied(t *testing.T, from, to eventlog.Log, stream string, n int) {
	t.Helper()
	var all []eventlog.Event
	for r, err := range from.ReadStream(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Event)
	}
	add(t, to, stream, 0, all[:n]...)
}

// everyCommand calls every command and look-up, and returns what each is told.
func everyCommand(ctx context.Context, l *submissions.Ledger, id events.WithdrawalID, b *bank) map[string]error {
	told := map[string]error{}
	_, told["request"] = l.Request(ctx, order("new"))
	_, told["submit"] = l.Submit(ctx, "req-1", id, b.Send, nil)
	_, told["submit under another key"] = l.Submit(ctx, "req-2", id, b.Send, nil)
	_, told["resolve"] = l.Resolve(ctx, "req-1", submissions.Resolution{By: ann, Withdrawal: id, Result: events.ResultFailed, Reason: "r", Evidence: "e", Seen: 1})
	_, told["release"] = l.Release(ctx, "req-1", submissions.Release{By: ann, Reason: "r", Evidence: "e", Seen: 1})
	_, told["outcome"] = l.Outcome(ctx, "req-1")
	_, told["claimed-by"] = l.ClaimedBy(ctx, id)
	_, told["in-flight"] = l.InFlight(ctx)
	_, told["history"] = l.History(ctx, id)
	return told
}

// The worst that a copy can do: a withdrawal that was paid is requested in the copy and
// not yet claimed there, and somebody submits it there. Without the guard it is paid again.
func TestCustodyOfAHalfCopiedLog(t *testing.T) {
	t.Parallel()
	source := newFixture(t, nil)
	id := source.request(t, "order-1")
	taken(t)(source.Submit(t.Context(), "req-1", id, source.bank.Send, nil))

	target := memory.New()
	keep(t, target, events.CopyBegun{Copy: "c-1", From: "sqlite:/old.db", First: "e-1"})
	copied(t, source.log, target, id.Stream(), 1)

	told := everyCommand(t.Context(), newLedger(t, target, nil), id, source.bank)
	if n := source.bank.sends(); n != 1 {
		t.Fatalf("the withdrawal left %d times", n)
	}
	for what, err := range told {
		var no *aggregate.NoLedger
		if r := refused(t, err, submissions.CodeUnavailable); !errors.As(r, &no) || no.Keeper != aggregate.Coming || no.Other != "sqlite:/old.db" {
			t.Errorf("%s: got %v, want that the log is being copied into", what, err)
		}
	}
	for r, err := range target.ReadAll(t.Context(), eventlog.Start) {
		if err != nil || r.Position > 2 {
			t.Errorf("a refused command left %s in %s (%v)", r.Type, r.Stream, err)
		}
	}
}

// A log whose ledger has moved pays nothing, and tells nobody how things stood.
func TestCustodyOfALogThatWasLeft(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	keep(t, f.log, events.LedgerMoved{Copy: "c-1", To: "esdb://a:2113"})
	l := newLedger(t, f.log, nil)
	for what, err := range everyCommand(t.Context(), l, id, f.bank) {
		if what == "history" { // it only says what is in this log
			if err != nil {
				t.Errorf("history: %v", err)
			}
			continue
		}
		var no *aggregate.NoLedger
		if r := refused(t, err, submissions.CodeUnavailable); !errors.As(r, &no) || no.Keeper != aggregate.Gone || no.Other != "esdb://a:2113" {
			t.Errorf("%s: got %v, want that the ledger has moved", what, err)
		}
	}
	if n := f.bank.sends(); n != 0 {
		t.Fatalf("the withdrawal left %d times", n)
	}
	// And back: what takes the ledger over again pays again.
	keep(t, f.log, events.CopyBegun{Copy: "c-2", From: "esdb://a:2113", First: "e-1"})
	keep(t, f.log, events.CopyAdvanced{Copy: "c-2", Position: 9, Events: 1})
	keep(t, f.log, events.CopyCompleted{Copy: "c-2", Events: 1})
	taken(t)(newLedger(t, f.log, nil).Submit(t.Context(), "req-1", id, f.bank.Send, nil))
}

// A ledger that was open before looks again before CustodyTrust is over, whatever its
// clock does in between.
func TestCustodyIsLookedForAgain(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"time goes by": 0, "the clock is set back": -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var ahead time.Duration
			f := newFixture(t, &submissions.Options{Clock: func() time.Time { return time.Now().Add(ahead) }})
			id := f.request(t, "order-1")
			keep(t, f.log, events.LedgerMoved{Copy: "c-1", To: "esdb://a:2113"})
			if _, err := f.ClaimedBy(t.Context(), id); err != nil {
				t.Errorf("%s: within its trust it looked: %v", name, err) // or there is nothing to test
			}
			if ahead = jump; jump == 0 {
				time.Sleep(submissions.CustodyTrust)
			}
			_, err := f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
			if refused(t, err, submissions.CodeUnavailable); f.bank.sends() != 0 {
				t.Errorf("%s: it was paid from a log that is not the ledger", name)
			}
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A process that was held up while it took the claim looks again before it calls the rail.
func TestCustodyIsLookedForBeforeTheRailIsCalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bank{}
		log := &hooked{Log: memory.New()}
		l := newLedger(t, log, nil)
		r, err := l.Request(t.Context(), order("order-1"))
		if err != nil {
			t.Fatal(err)
		}
		log.after = func([]string) error {
			log.after = nil
			time.Sleep(2 * submissions.CustodyTrust)
			keep(t, log.Log, events.LedgerMoved{Copy: "c-1", To: "esdb://a:2113"})
			return nil
		}
		_, err = l.Submit(t.Context(), "req-1", r.ID, b.Send, nil)
		if refused(t, err, submissions.CodeOutcomeUnknown); b.sends() != 0 {
			t.Error("it was paid from a log that the ledger had left")
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The answer of a rail to a claim that was taken before is never lost (B7), whatever has
// become of the log.
func TestCustodyTakesARailsAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	taken(t)(f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		keep(t, f.log, events.LedgerMoved{Copy: "c-1", To: "esdb://a:2113"})
		return f.bank.Send(ctx, p)
	}, nil))
	var types []string
	for r, err := range f.log.ReadStream(t.Context(), id.Stream(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, r.Type)
	}
	if !slices.Contains(types, "OutcomeResolved") {
		t.Errorf("the stream has %v", types)
	}
}
