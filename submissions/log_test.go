package submissions_test

import (
	"context"
	"fmt"
	"slices"
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

// FAULTS: the append landed and the client saw an error. The same bytes are tried again
// until the answer is definite; the send counter stays 1.
func TestUnknownResultIsTriedAgain(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, eventType := range []string{"KeyReserved", "KeyClaimed", "OutcomeResolved"} {
			for _, landed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, apart %v, landed %v", eventType, apart, landed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						log := &hooked{Log: memory.New(), apart: apart}
						if landed {
							log.after = failing(eventlog.ErrUnknownResult, eventType, 3)
						} else {
							log.before = failing(eventlog.ErrUnknownResult, eventType, 3)
						}
						f := fixtureOn(t, log, nil)
						id := f.request(t, "order-1")
						taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
						want := []string{"WithdrawalRequested", "KeyClaimed", "SendAttempted", "OutcomeResolved"}
						if got := types(t, log, id.Stream()); !slices.Equal(got, want) || f.bank.sends() != 1 {
							t.Errorf("the log has %v, %d sends", got, f.bank.sends())
						}
					})
				})
			}
		}
	}
}

// When the caller's time is up before the answer is definite, it is unavailable, never
// "not claimed", and the rail is not called. The next submit of the key sees whatever
// happened.
func TestUnknownResultWhenTimeIsUp(t *testing.T) {
	for _, landed := range []bool{false, true} {
		t.Run(fmt.Sprintf("landed %v", landed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &hooked{Log: memory.New()}
				f := fixtureOn(t, log, &submissions.Options{Patience: time.Minute})
				id := f.request(t, "order-1")
				never := failing(eventlog.ErrUnknownResult, "KeyClaimed", 1<<30)
				if landed {
					log.after = never
				} else {
					log.before = never
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				_, err := f.Submit(ctx, "req-1", id, f.bank.Send, nil)
				refused(t, err, aggregate.CodeUnavailable)
				if waited := time.Since(began); waited != 5*time.Second {
					t.Errorf("it waited %s", waited)
				}
				began = time.Now()
				_, err = f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
				if !landed {
					refused(t, err, aggregate.CodeUnavailable)
					if waited := time.Since(began); waited != time.Minute {
						t.Errorf("without a deadline it waited %s", waited)
					}
				}
				log.before, log.after = nil, nil
				_, err = f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
				if landed {
					refused(t, err, aggregate.CodeInFlight)
				} else if err != nil {
					t.Fatal(err)
				}
				if want := map[bool]int{false: 1, true: 0}[landed]; f.bank.sends() != want {
					t.Errorf("%d sends, want %d", f.bank.sends(), want)
				}
			})
		})
	}
}

// A rail's answer that cannot be recorded is told to the caller, with what it was; the
// withdrawal stays in flight, and the answer is recorded once the log takes it.
func TestAnswerThatCannotBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &hooked{Log: memory.New()}
		f := fixtureOn(t, log, nil)
		id := f.request(t, "order-1")
		var down atomic.Bool
		down.Store(true)
		log.before = func(types []string) error {
			if down.Load() && slices.Contains(types, "OutcomeResolved") {
				return eventlog.ErrNotExecuted
			}
			return nil
		}
		_, err := f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
		refused(t, err, aggregate.CodeOutcomeUnknown)
		if want := "tx-a"; !containsText(err, want) {
			t.Errorf("%v does not say %s", err, want)
		}
		_, err = f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
		refused(t, err, aggregate.CodeInFlight)
		time.Sleep(time.Hour) // however long it takes
		down.Store(false)
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s, err := f.Outcome(t.Context(), "req-1"); err != nil || s.State != aggregate.StateSent || s.Outcome.Reference != "tx-a" {
			t.Errorf("once the log takes it: %+v, %v", s, err)
		}
		if f.bank.sends() != 1 {
			t.Errorf("%d sends", f.bank.sends())
		}
	})
}

// A rail's answer that landed, and whose result the log did not say for however long, is in
// the log once: the same bytes are tried again, and are no late answer to themselves.
func TestAnswerThatLandedUnseenIsRecordedOnce(t *testing.T) {
	for _, eventType := range []string{"OutcomeResolved", "SendRefused", "SendUnconfirmed"} {
		t.Run(eventType, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &hooked{Log: memory.New()}
				f := fixtureOn(t, log, nil)
				id := f.request(t, "order-1")
				var silent atomic.Bool
				silent.Store(true)
				log.after = func(types []string) error {
					if silent.Load() && slices.Contains(types, eventType) {
						return eventlog.ErrUnknownResult
					}
					return nil
				}
				_, err := f.Submit(t.Context(), "req-1", id, map[string]rail.Sender{
					"OutcomeResolved": f.bank.Send, "SendUnconfirmed": lost,
					"SendRefused": func(context.Context, rail.Payment) (rail.Receipt, error) {
						return rail.Receipt{}, &rail.Refusal{Reason: "no"}
					},
				}[eventType], nil)
				refused(t, err, aggregate.CodeOutcomeUnknown)
				time.Sleep(time.Hour)
				silent.Store(false)
				if err := f.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := []string{"WithdrawalRequested", "KeyClaimed", "SendAttempted", eventType}
				if got := types(t, log, id.Stream()); !slices.Equal(got, want) {
					t.Errorf("the log has %v, want %v", got, want)
				}
			})
		})
	}
}

// The rail is never called once the recorded deadline has passed: by then a person may
// have released the claim.
func TestClaimRecordedTooLateIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &hooked{Log: memory.New()}
		f := fixtureOn(t, log, &submissions.Options{SendTimeout: time.Second})
		id := f.request(t, "order-1")
		log.after = func(types []string) error {
			if slices.Contains(types, "SendAttempted") {
				time.Sleep(2 * time.Second) // the log took its time to say so
			}
			return nil
		}
		_, err := f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
		refused(t, err, aggregate.CodeOutcomeUnknown)
		if f.bank.sends() != 0 {
			t.Error("it was sent after its deadline")
		}
		if _, err := release(t.Context(), f.Ledger, "req-1"); err != nil {
			t.Errorf("an attempt that was never made cannot be released: %v", err)
		}
	})
}

// A context that has ended before anything was written writes nothing.
func TestCancelledBeforeTheClaim(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Submit(ctx, "req-1", id, f.bank.Send, nil)
	refused(t, err, aggregate.CodeUnavailable)
	if n := size(t, f.log); n != 1 || f.bank.sends() != 0 {
		t.Errorf("%d events, %d sends", n, f.bank.sends())
	}
}

// D4, D5, FAULTS: every command on a stream that is not sound is refused, on one that
// was deleted and begins anew too; other withdrawals go on.
func TestD5DamagedStreams(t *testing.T) {
	for name, spoil := range map[string]func(eventlog.Recorded) (eventlog.Recorded, bool){
		"its first event is gone": func(r eventlog.Recorded) (eventlog.Recorded, bool) { return r, r.Revision != 0 },
		"a gap":                   func(r eventlog.Recorded) (eventlog.Recorded, bool) { return r, r.Revision != 1 },
		"a changed byte": func(r eventlog.Recorded) (eventlog.Recorded, bool) {
			if r.Revision == 2 {
				r.Data = append([]byte(" "), r.Data...)
			}
			return r, true
		},
		"a type from the future": func(r eventlog.Recorded) (eventlog.Recorded, bool) {
			if r.Revision == 1 {
				r.Type = "KeyLeased"
			}
			return r, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, id := inFlight(t)
			other := f.request(t, "order-2")
			before := size(t, f.log)
			l := newLedger(t, &spoiled{Log: f.log, stream: id.Stream(), spoil: spoil}, nil)
			ctx := t.Context()
			with := gaveUp
			with.Withdrawal = id
			for name, call := range map[string]func() error{
				"request":    func() error { _, err := l.Request(ctx, order("order-1")); return err },
				"submit":     func() error { _, err := l.Submit(ctx, "req-1", id, f.bank.Send, nil); return err },
				"another":    func() error { _, err := l.Submit(ctx, "req-2", id, f.bank.Send, nil); return err },
				"its key":    func() error { _, err := l.Submit(ctx, "req-1", other, f.bank.Send, nil); return err },
				"resolve":    func() error { _, err := resolve(ctx, l, "req-1", with); return err },
				"release":    func() error { _, err := release(ctx, l, "req-1"); return err },
				"outcome":    func() error { _, err := l.Outcome(ctx, "req-1"); return err },
				"claimed by": func() error { _, err := l.ClaimedBy(ctx, id); return err },
				"history":    func() error { _, err := l.History(ctx, id); return err },
				"in flight":  func() error { _, err := l.InFlight(ctx); return err },
			} {
				t.Log(name)
				refused(t, call(), aggregate.CodeDamaged)
			}
			if n := size(t, f.log); n != before || f.bank.sends() != 0 {
				t.Errorf("%d events were written, %d sends", n-before, f.bank.sends())
			}
			taken(t)(l.Submit(ctx, "req-3", other, f.bank.Send, nil))
		})
	}
}

// What is remembered of a stream never answers for it: a ledger that has seen a stream
// finds out what others have appended, at every step.
func TestLedgersSeeEachOther(t *testing.T) {
	f := newFixture(t, nil)
	a, b := f.Ledger, newLedger(t, f.log, nil)
	id := f.request(t, "order-1")
	for _, l := range []*submissions.Ledger{a, b} {
		if s, err := l.ClaimedBy(t.Context(), id); err != nil || s.State != aggregate.StateRequested {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	_, err := a.Submit(t.Context(), "req-1", id, lost, nil)
	refused(t, err, aggregate.CodeOutcomeUnknown)
	_, err = b.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
	refused(t, err, aggregate.CodeWithdrawalClaimed)
	if _, err := release(t.Context(), b, "req-1"); err != nil {
		t.Fatal(err)
	}
	_, err = a.Outcome(t.Context(), "req-1")
	refused(t, err, aggregate.CodeNotFound)
	taken(t)(a.Submit(t.Context(), "req-2", id, f.bank.Send, nil))
	taken(t)(b.Submit(t.Context(), "req-2", id, f.bank.Send, nil))
	if f.bank.sends() != 1 {
		t.Errorf("%d sends", f.bank.sends())
	}
}

// A response that is too long to keep is noted, and the outcome is recorded all the same.
func TestLongAnswersAreNotLost(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	long := make([]byte, 1<<20)
	first := taken(t)(f.Submit(t.Context(), "req-1", id, func(context.Context, rail.Payment) (rail.Receipt, error) {
		return rail.Receipt{Reference: "tx\xff" + string(make([]rune, 500)), Response: events.Response{MediaType: "text/\xffplain", Body: long}}, nil
	}, nil))
	again := taken(t)(newLedger(t, f.log, nil).Submit(t.Context(), "req-1", id, f.bank.Send, nil))
	if first.Reference != again.Reference || string(first.Response.Body) != string(again.Response.Body) || first.Response.MediaType != again.Response.MediaType {
		t.Errorf("first %q %s, then %q %s", first.Reference, first.Response.Body, again.Reference, again.Response.Body)
	}
}

func TestNewRefusesImpossibleOptions(t *testing.T) {
	for _, o := range []submissions.Options{
		{SendTimeout: -1}, {SendTimeout: 25 * time.Hour}, {ClockMargin: -time.Second}, {Patience: -1},
	} {
		_, err := submissions.New(memory.New(), &o)
		refused(t, err, aggregate.CodeInvalidRequest)
	}
}

func TestHistory(t *testing.T) {
	f, id := inFlight(t)
	taken(t)(f.Resolve(t.Context(), "req-1", wasSent))
	history, err := f.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range history {
		got = append(got, r.Event.Type()+" by "+r.Metadata.Actor)
	}
	want := []string{"WithdrawalRequested by unnamed", "KeyClaimed by unnamed", "SendAttempted by unnamed", "SendUnconfirmed by unnamed", "OutcomeResolved by ann"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// A2: a first answer and its replays are each caller's own; nobody's changes reach
// anybody else's, and a rail may use its buffer again.
func TestA2AnswersAreNotShared(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	buffer := []byte("first answer")
	first := taken(t)(f.Submit(t.Context(), "req-1", id, func(context.Context, rail.Payment) (rail.Receipt, error) {
		return rail.Receipt{Reference: " tx\n", Response: events.Response{MediaType: "text/plain", Body: buffer}}, nil
	}, nil))
	copy(buffer, "OTHER PAYEE!")
	copy(first.Response.Body, "changed")
	again := taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
	if string(again.Response.Body) != "first answer" {
		t.Errorf("the replay is %q", again.Response.Body)
	}
	// B3: a reference is recorded as a person can say it.
	with := wasSent
	with.Reference = "tx"
	taken(t)(f.Resolve(t.Context(), "req-1", with))
}

// B4: a clock that is set back between the claim and the call does not make the call
// longer than was recorded.
func TestB4ClockSetBackBeforeTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		log := &hooked{Log: memory.New(), after: func(types []string) error {
			if slices.Contains(types, "SendAttempted") {
				back.Store(int64(time.Hour))
			}
			return nil
		}}
		f := fixtureOn(t, log, &submissions.Options{SendTimeout: time.Second, Clock: func() time.Time {
			return time.Now().Add(-time.Duration(back.Load()))
		}})
		id := f.request(t, "order-1")
		_, err := f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
			if deadline, _ := ctx.Deadline(); time.Until(deadline) > time.Second {
				t.Errorf("the rail has %s", time.Until(deadline))
			}
			return rail.Receipt{}, errLost
		}, nil)
		refused(t, err, aggregate.CodeOutcomeUnknown)
	})
}

// B7: what the rail itself says closes no dispute; only a person does, and until then the
// withdrawal is listed, of its own tenant alone.
func TestB7OutcomeByTheRailClosesNoDispute(t *testing.T) {
	f, id := inFlight(t)
	if _, err := release(t.Context(), f.Ledger, "req-1"); err != nil {
		t.Fatal(err)
	}
	taken(t)(f.Submit(t.Context(), "req-2", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		// The first attempt's answer arrives while the second is under way.
		put(t, f.log, id.Stream(), events.LateOutcomeReported{Key: "req-1", Attempt: 1, Result: events.ResultSent, Reference: "tx-old"})
		return f.bank.Send(ctx, p)
	}, nil))
	list, err := f.InFlight(t.Context())
	if err != nil || len(list) != 1 || list[0].Dispute == nil || list[0].Outcome == nil {
		t.Fatalf("the list is %+v, %v", list, err)
	}
	if others, err := f.For("other").InFlight(t.Context()); err != nil || len(others) != 0 {
		t.Errorf("another tenant's list is %+v, %v", others, err)
	}
}
