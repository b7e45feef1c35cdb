package submissions_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// watched is a log whose reads are noted, and can be made to fail.
type watched struct {
	eventlog.Log
	// failing is the stream whose reads fail, or eventlog.WholeLog for the log's; after is
	// how many events are read before.
	failing string
	after   int
	reads   []string // stream and revision
}

var errDisk = errors.New("the disk failed")

func (w *watched) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	w.reads = append(w.reads, fmt.Sprint(stream, " ", from))
	return w.through(w.failing == stream, w.Log.ReadStream(ctx, stream, from))
}

func (w *watched) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return w.through(w.failing == eventlog.WholeLog, w.Log.ReadAll(ctx, after))
}

func (w *watched) through(fails bool, seq iter.Seq2[eventlog.Recorded, error]) iter.Seq2[eventlog.Recorded, error] {
	if !fails {
		return seq
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		n := 0
		for r, err := range seq {
			if n == w.after || err != nil {
				break
			}
			n++
			if !yield(r, nil) {
				return
			}
		}
		yield(eventlog.Recorded{}, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, errDisk))
	}
}

// A read that fails, at whichever of the streams that a command needs and however far it
// got, is unavailable: nothing is decided from half of it, nothing is written or sent, and
// nothing of it is remembered.
func TestReadsThatFail(t *testing.T) {
	for after := range 4 {
		t.Run(fmt.Sprintf("after %d events", after), func(t *testing.T) { readsThatFail(t, after) })
	}
}

func readsThatFail(t *testing.T, after int) {
	ctx := t.Context()
	f := newFixture(t, nil)
	paid, held, open := f.request(t, "order-1"), f.request(t, "order-2"), f.request(t, "order-3")
	taken(t)(f.Submit(ctx, "req-1", paid, f.bank.Send, nil))
	_, err := f.Submit(ctx, "req-2", held, lost, nil)
	refused(t, err, aggregate.CodeOutcomeUnknown)
	_, err = f.Submit(ctx, "req-4", f.request(t, "order-4"), lost, nil)
	refused(t, err, aggregate.CodeOutcomeUnknown)
	events1, sends := size(t, f.log), f.bank.sends()
	key := func(k events.RequestKey) string { return k.Stream(events.DefaultTenant) }
	with := gaveUp
	with.Withdrawal, with.Seen = held, 4
	for name, c := range map[string]struct {
		failing []string
		call    func(*submissions.Ledger) error
	}{
		"request": {[]string{held.Stream()}, func(l *submissions.Ledger) error { _, err := l.Request(ctx, order("order-2")); return err }},
		"submit": {[]string{key("req-9"), open.Stream()}, func(l *submissions.Ledger) error {
			_, err := l.Submit(ctx, "req-9", open, f.bank.Send, nil)
			return err
		}},
		"submit another's": {[]string{key("req-1"), open.Stream(), paid.Stream()},
			func(l *submissions.Ledger) error {
				_, err := l.Submit(ctx, "req-1", open, f.bank.Send, nil)
				return err
			}},
		"replay": {[]string{key("req-1"), paid.Stream()}, func(l *submissions.Ledger) error {
			_, err := l.Submit(ctx, "req-1", paid, f.bank.Send, nil)
			return err
		}},
		"resolve": {[]string{key("req-2"), held.Stream()}, func(l *submissions.Ledger) error { _, err := l.Resolve(ctx, "req-2", with); return err }},
		"release": {[]string{key("req-2"), held.Stream()}, func(l *submissions.Ledger) error {
			_, err := l.Release(ctx, "req-2", submissions.Release{By: ann, Reason: "r", Evidence: "e", Seen: 4})
			return err
		}},
		"outcome":    {[]string{key("req-1"), paid.Stream()}, func(l *submissions.Ledger) error { _, err := l.Outcome(ctx, "req-1"); return err }},
		"claimed by": {[]string{held.Stream()}, func(l *submissions.Ledger) error { _, err := l.ClaimedBy(ctx, held); return err }},
		"history": {[]string{held.Stream()}, func(l *submissions.Ledger) error {
			history, err := l.History(ctx, held)
			if len(history) > after {
				t.Errorf("it was told %d events", len(history))
			}
			return err
		}},
		"in flight": {[]string{eventlog.WholeLog, held.Stream()}, func(l *submissions.Ledger) error {
			list, err := l.InFlight(ctx)
			if list != nil {
				t.Errorf("it was told %+v", list)
			}
			return err
		}},
	} {
		for _, failing := range c.failing {
			log := &watched{Log: f.log, failing: failing, after: after}
			l := newLedger(t, log, nil)
			err := c.call(l)
			if name == "history" && after > 0 && err == nil {
				t.Errorf("%s said nothing of the failure", name)
			}
			if r := refused(t, err, aggregate.CodeUnavailable); !errors.Is(r, errDisk) {
				t.Errorf("%s, where %s cannot be read: %v does not say why", name, failing, r)
			}
			if n := size(t, f.log); n != events1 || f.bank.sends() != sends {
				t.Fatalf("%s, where %s cannot be read: %d events, %d sends", name, failing, n-events1, f.bank.sends()-sends)
			}
			// The same ledger, once the log can be read, knows what is so.
			log.failing = ""
			if s, err := l.ClaimedBy(ctx, held); err != nil || s.Holder() != "req-2" || s.Events != 4 {
				t.Errorf("afterwards: %+v, %v", s, err)
			}
		}
	}
}

// An append of which the log says that it was not executed is tried again, with every kind
// of command.
func TestWhatWasNotExecutedIsTriedAgain(t *testing.T) {
	for _, eventType := range []string{"WithdrawalRequested", "KeyClaimed", "OutcomeResolved", "Released"} {
		t.Run(eventType, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &hooked{Log: memory.New()}
				log.before = failing(eventlog.ErrNotExecuted, eventType, 2)
				f := fixtureOn(t, log, nil)
				id := f.request(t, "order-1")
				if eventType == "Released" {
					_, err := f.Submit(t.Context(), "req-1", id, lost, nil)
					refused(t, err, aggregate.CodeOutcomeUnknown)
					if _, err := release(t.Context(), f.Ledger, "req-1"); err != nil {
						t.Fatal(err)
					}
					return
				}
				taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
				if f.bank.sends() != 1 {
					t.Errorf("%d sends", f.bank.sends())
				}
			})
		})
	}
}

// switched is a log that can be another one from one call to the next.
type switched struct{ eventlog.Log }

// What a ledger remembers and the log does not have any more costs a conflict, and is then
// read anew: the ledger does not insist on it.
func TestWhatTheLogForgotIsForgotten(t *testing.T) {
	log := &switched{memory.New()}
	f := fixtureOn(t, log, nil)
	id := f.request(t, "order-1")
	log.Log = memory.New()
	_, err := f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
	refused(t, err, aggregate.CodeNotFound)
	if f.bank.sends() != 0 {
		t.Error("it was sent")
	}
	if again := f.request(t, "order-1"); again != id {
		t.Errorf("requested as %s, and now as %s", id, again)
	}
	taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
}

// A log that was put back, and went on otherwise, is not what is remembered: that is damage
// once, and then the stream is read from its beginning.
func TestWhatTheLogHasOtherwiseIsReadAnew(t *testing.T) {
	ctx := t.Context()
	log := &switched{memory.New()}
	f := fixtureOn(t, log, nil)
	id := f.request(t, "order-1")
	log.Log = memory.New()
	other := fixtureOn(t, log.Log, nil)
	other.request(t, "order-1")
	taken(t)(other.Submit(ctx, "req-2", id, other.bank.Send, nil))
	if _, err := f.ClaimedBy(ctx, id); err != nil {
		refused(t, err, aggregate.CodeDamaged)
	}
	if s, err := f.ClaimedBy(ctx, id); err != nil || s.Holder() != "req-2" {
		t.Errorf("%+v, %v", s, err)
	}
}

// A stream is read on from where it was left, unless it is longer than what is kept in
// memory of one: then it is read from its beginning, and the answers are the same.
func TestLongStreamsAreNotRemembered(t *testing.T) {
	for _, bytes := range []int{100, 20_000} {
		t.Run(fmt.Sprintf("an answer of %d bytes", bytes), func(t *testing.T) {
			ctx := t.Context()
			log := &watched{Log: memory.New()}
			f := fixtureOn(t, log, nil)
			id := f.request(t, "order-1")
			first := taken(t)(f.Submit(ctx, "req-1", id, answering(strings.Repeat("x", bytes)), nil))
			log.reads = nil
			again := taken(t)(f.Submit(ctx, "req-1", id, f.bank.Send, nil))
			if string(again.Response.Body) != string(first.Response.Body) || f.bank.sends() != 0 {
				t.Errorf("the replay has %d bytes, after %d sends", len(again.Response.Body), f.bank.sends())
			}
			from := map[bool]string{true: " 0", false: " 4"}[bytes > 8<<10]
			if want := id.Stream() + from; !slices.Contains(log.reads, want) {
				t.Errorf("it read %q, want %q among them", log.reads, want)
			}
		})
	}
}

// answering is a rail that answers with a body.
func answering(body string) rail.Sender {
	return func(context.Context, rail.Payment) (rail.Receipt, error) {
		return rail.Receipt{Reference: "tx", Response: events.Response{MediaType: "text/plain", Body: []byte(body)}}, nil
	}
}

// What cannot be written down is refused as a whole, before anything is: by a clock near
// the end of what a timestamp can say, the claim's deadline is beyond it.
func TestWhatCannotBeWrittenIsRefused(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for name, now := range map[string]time.Time{"the deadline": last, "the clock": last.Add(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			id := f.request(t, "order-1")
			l := newLedger(t, f.log, &submissions.Options{Clock: func() time.Time { return now }})
			_, err := l.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
			refused(t, err, aggregate.CodeInvalidRequest)
			if n := size(t, f.log); n != 1 || f.bank.sends() != 0 {
				t.Errorf("%d events, %d sends", n, f.bank.sends())
			}
			taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
		})
	}
}

// What the log will never take is not tried again: it is damage, or the log is closed or
// read-only, and the caller is told at once.
func TestWhatTheLogWillNotTakeIsNotTriedAgain(t *testing.T) {
	for _, c := range []struct {
		err  error
		code aggregate.Code
	}{
		{&eventlog.Damaged{Stream: "s", Kind: eventlog.Altered, Reason: "no"}, aggregate.CodeDamaged},
		{eventlog.ErrClosed, aggregate.CodeUnavailable},
		{eventlog.ErrReadOnly, aggregate.CodeUnavailable},
		{eventlog.ErrForbidden, aggregate.CodeUnavailable},
		{&eventlog.Invalid{Reason: "too long"}, aggregate.CodeUnavailable},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &hooked{Log: memory.New()}
				f := fixtureOn(t, log, nil)
				id := f.request(t, "order-1")
				appends, began := 0, time.Now()
				log.before = func([]string) error { appends++; return c.err }
				_, err := f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
				if r := refused(t, err, c.code); !errors.Is(r, c.err) {
					t.Errorf("%v does not say why", r)
				}
				if waited := time.Since(began); waited != 0 || appends != 1 || f.bank.sends() != 0 {
					t.Errorf("%d appends in %s, %d sends", appends, waited, f.bank.sends())
				}
			})
		})
	}
}

// The same of a key: that it was used is forgotten where the log does not know of it.
func TestWhatTheLogForgotOfAKeyIsForgotten(t *testing.T) {
	ctx := t.Context()
	log := &switched{memory.New()}
	f := fixtureOn(t, log, nil)
	_, err := f.Submit(ctx, "req-1", f.request(t, "order-1"), lost, nil)
	refused(t, err, aggregate.CodeOutcomeUnknown)
	if _, err := release(ctx, f.Ledger, "req-1"); err != nil {
		t.Fatal(err)
	}
	log.Log = memory.New()
	id := fixtureOn(t, log.Log, nil).request(t, "order-2")
	taken(t)(f.Submit(ctx, "req-1", id, f.bank.Send, nil))
}
