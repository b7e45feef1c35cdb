package submissions_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
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

// An answer that the log will never take, or that cannot be written at all, is told to the
// caller, and nobody waits for it for ever.
func TestAnswerThatIsNeverTaken(t *testing.T) {
	for name, never := range map[string]error{
		"closed": eventlog.ErrClosed, "read-only": eventlog.ErrReadOnly, "damaged": &eventlog.Damaged{Stream: "s", Reason: "no"}, "a clock beyond writing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &hooked{Log: memory.New()}
				var beyond atomic.Bool
				f := fixtureOn(t, log, &submissions.Options{Clock: func() time.Time {
					if beyond.Load() {
						return time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
					}
					return time.Now()
				}})
				id := f.request(t, "order-1")
				if never != nil {
					log.before = failing(never, "OutcomeResolved", 1<<30)
				}
				began := time.Now()
				_, err := f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
					beyond.Store(never == nil)
					return f.bank.Send(ctx, p)
				}, nil)
				if r := refused(t, err, aggregate.CodeOutcomeUnknown); !containsText(r, "tx-a") {
					t.Errorf("%v does not say what the rail answered", r)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := f.Close(ctx); err != nil || time.Since(began) > time.Minute {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

// unreadable is a log whose streams cannot be read for a time.
type unreadable struct {
	eventlog.Log
	down atomic.Bool
}

func (u *unreadable) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	if u.down.Load() {
		return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, eventlog.ErrUnavailable) }
	}
	return u.Log.ReadStream(ctx, stream, from)
}

// B7: an answer that lost to a person's word, on a log that then cannot be read, is kept
// until it can, and is then the late answer that it is.
func TestB7LateAnswerOnALogThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &unreadable{Log: memory.New()}
		f := fixtureOn(t, log, nil)
		person := newLedger(t, log.Log, &submissions.Options{Clock: func() time.Time { return time.Now().Add(24 * time.Hour) }})
		id := f.request(t, "order-1")
		_, err := f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
			if _, err := release(ctx, person, "req-1"); err != nil {
				t.Error(err)
			}
			log.down.Store(true)
			return f.bank.Send(ctx, p)
		}, nil)
		refused(t, err, aggregate.CodeOutcomeUnknown)
		time.Sleep(time.Hour)
		log.down.Store(false)
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, err := person.ClaimedBy(t.Context(), id)
		if err != nil || s.Dispute == nil || s.Dispute.Reference != "tx-a" || len(s.LateAnswers) != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// What a rail says of its response is kept as far as it can be said.
func TestMediaTypesOfAnswers(t *testing.T) {
	for given, want := range map[string]string{
		"": "application/octet-stream", "text/plain": "text/plain", "text/\xffplain": "text/\uFFFDplain", strings.Repeat("x", 1000): strings.Repeat("x", rail.MaxReference),
	} {
		f := newFixture(t, nil)
		outcome := taken(t)(f.Submit(t.Context(), "req-1", f.request(t, "order-1"), func(context.Context, rail.Payment) (rail.Receipt, error) {
			return rail.Receipt{Reference: "tx", Response: events.Response{MediaType: given, Body: []byte("body")}}, nil
		}, nil))
		if outcome.Response.MediaType != want || string(outcome.Response.Body) != "body" {
			t.Errorf("media type %q became %q", given, outcome.Response.MediaType)
		}
	}
}

// The rail's name is recorded with the attempt.
func TestRailsName(t *testing.T) {
	for given, want := range map[string]string{"": "caller", "bank": "bank"} {
		f := newFixture(t, nil)
		id := f.request(t, "order-1")
		taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, &submissions.SubmitOptions{Rail: given}))
		s, err := f.ClaimedBy(t.Context(), id)
		if err != nil || s.Claim.Attempt.Rail != want {
			t.Errorf("rail %q: %+v, %v", given, s.Claim, err)
		}
	}
}

// A12, A14: whoever acts, and for whom, is checked first, whether or not there is anything
// to be written.
func TestA12WhoActsIsCheckedFirst(t *testing.T) {
	f := newFixture(t, nil)
	ctx := t.Context()
	id := f.request(t, "order-1")
	taken(t)(f.Submit(ctx, "req-1", id, f.bank.Send, nil))
	by := submissions.By{Actor: "ann\n"}
	repeated := order("order-1")
	repeated.By = by
	with := wasSent
	with.Withdrawal, with.Reference = id, "tx-a"
	nobody := f.For("no tenant")
	for name, call := range map[string]func() error{
		"a repeated request": func() error { _, err := f.Request(ctx, repeated); return err },
		"a replay": func() error {
			_, err := f.Submit(ctx, "req-1", id, f.bank.Send, &submissions.SubmitOptions{By: by})
			return err
		},
		"a repeated resolution": func() error { with := with; with.By = by; _, err := f.Resolve(ctx, "req-1", with); return err },
		"a trace of a resolution": func() error {
			with := with
			with.CorrelationID = "a\nb"
			_, err := f.Resolve(ctx, "req-1", with)
			return err
		},
		"nobody's request":    func() error { _, err := nobody.Request(ctx, order("order-1")); return err },
		"nobody's submit":     func() error { _, err := nobody.Submit(ctx, "req-1", id, f.bank.Send, nil); return err },
		"nobody's resolution": func() error { _, err := nobody.Resolve(ctx, "req-1", with); return err },
		"nobody's release":    func() error { _, err := release(ctx, nobody, "req-1"); return err },
		"nobody's outcome":    func() error { _, err := nobody.Outcome(ctx, "req-1"); return err },
		"nobody's withdrawal": func() error { _, err := nobody.ClaimedBy(ctx, id); return err },
		"nobody's history":    func() error { _, err := nobody.History(ctx, id); return err },
		"nobody's list":       func() error { _, err := nobody.InFlight(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) { refused(t, call(), aggregate.CodeInvalidRequest) })
	}
	taken(t)(f.Resolve(ctx, "req-1", with)) // which says nothing new
}

// A6, B1: by its key alone, only what the key holds is resolved: a key whose claim was
// released resolves nothing, though the withdrawal is free.
func TestB1AKeyThatHoldsNothingResolvesNothing(t *testing.T) {
	f, id := inFlight(t)
	ctx := t.Context()
	if _, err := release(ctx, f.Ledger, "req-1"); err != nil {
		t.Fatal(err)
	}
	before := size(t, f.log)
	_, err := f.Resolve(ctx, "req-1", wasSent)
	refused(t, err, aggregate.CodeNotFound)
	if s, err := f.ClaimedBy(ctx, id); err != nil || s.State != aggregate.StateRequested || size(t, f.log) != before {
		t.Errorf("%+v, %v", s, err)
	}
}

// B7: what is disputed comes first in the list, however young it is, and is in it though
// nobody holds it.
func TestB7DisputesComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ctx := t.Context()
		var want []events.WithdrawalID
		for i := range 8 {
			id := f.request(t, "order-"+string(rune('a'+i)))
			key := events.RequestKey("req-" + string(rune('a'+i)))
			_, err := f.Submit(ctx, key, id, lost, nil)
			refused(t, err, aggregate.CodeOutcomeUnknown)
			time.Sleep(time.Minute)
			if i%2 == 0 {
				want = append(want, id)
				continue
			}
			if _, err := release(ctx, f.Ledger, key); err != nil {
				t.Fatal(err)
			}
			put(t, f.log, id.Stream(), events.LateOutcomeReported{Key: key, Attempt: 1, Result: events.ResultSent, Reference: "tx"})
		}
		list, err := f.InFlight(ctx)
		if err != nil || len(list) != 8 {
			t.Fatalf("%d, %v", len(list), err)
		}
		for i, s := range list {
			if (s.Dispute != nil) != (i < 4) || i >= 4 && s.ID != want[i-4] {
				t.Errorf("number %d is %s, disputed %v, since %s", i, s.ID, s.Dispute != nil, s.WaitingSince())
			}
		}
	})
}
