package submissions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

var (
	errLost = errors.New("connection reset")

	wasSent = submissions.Resolution{By: ann, Result: events.ResultSent, Reference: "tx-a", Reason: "looked", Evidence: "statement 7"}
	gaveUp  = submissions.Resolution{By: ann, Result: events.ResultFailed, Reason: "looked", Evidence: "statement 7"}
)

func lost(context.Context, rail.Payment) (rail.Receipt, error) { return rail.Receipt{}, errLost }

// inFlight returns a fixture with a withdrawal whose send was lost, under req-1.
func inFlight(t *testing.T) (*fixture, events.WithdrawalID) {
	t.Helper()
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	_, err := f.Submit(t.Context(), "req-1", id, lost, nil)
	refused(t, err, aggregate.CodeOutcomeUnknown)
	return f, id
}

func TestB1ResolveClosesAKey(t *testing.T) {
	for _, with := range []submissions.Resolution{wasSent, gaveUp} {
		f, id := inFlight(t)
		first := taken(t)(resolve(t.Context(), f.Ledger, "req-1", with))
		if first.Result != with.Result || first.Reference != with.Reference || first.Source != events.SourcePerson ||
			first.Actor != "ann" || first.Reason != "looked" || first.Evidence != "statement 7" {
			t.Errorf("got %+v", first)
		}
		again := taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
		if string(again.Response.Body) != string(first.Response.Body) || !again.Replayed || f.bank.sends() != 0 {
			t.Errorf("a submit after it got %+v, and %d sends", again, f.bank.sends())
		}
		if list, err := f.InFlight(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("in flight: %v, %v", list, err)
		}
		// B3: again is a no-op; another outcome is a conflict, and the first stands.
		before := size(t, f.log)
		taken(t)(resolve(t.Context(), f.Ledger, "req-1", with))
		other := wasSent
		other.Reference = "tx-b"
		_, err := f.Resolve(t.Context(), "req-1", other)
		refused(t, err, aggregate.CodeAlreadyResolved)
		_, err = release(t.Context(), f.Ledger, "req-1")
		refused(t, err, aggregate.CodeAlreadyResolved)
		if n := size(t, f.log); n != before {
			t.Errorf("%d events were written", n-before)
		}
	}
}

func TestB1ResolutionForAnotherIdentity(t *testing.T) {
	f, id := inFlight(t)
	before := size(t, f.log)
	wrong := wasSent
	wrong.Withdrawal, wrong.Restated = id, submissions.Restated{Amount: "10.26"}
	_, err := f.Resolve(t.Context(), "req-1", wrong)
	refused(t, err, aggregate.CodeDetailsDiffer)
	wrong = wasSent
	wrong.Withdrawal = f.request(t, "order-2")
	_, err = f.Resolve(t.Context(), "req-1", wrong)
	if r := refused(t, err, aggregate.CodeKeyReused); r.Withdrawal != id {
		t.Errorf("got %+v", r)
	}
	if n := size(t, f.log); n != before+1 {
		t.Errorf("%d events were written", n-before-1)
	}
}

func TestB2ResolvingAnUnknownKey(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	// Without the withdrawal nobody can know what is meant.
	_, err := f.Resolve(t.Context(), "callback-1", wasSent)
	refused(t, err, aggregate.CodeNotFound)
	with := wasSent
	with.Withdrawal = id
	taken(t)(f.Resolve(t.Context(), "callback-1", with))
	if got := types(t, f.log, id.Stream()); !slices.Equal(got, []string{"WithdrawalRequested", "KeyClaimed", "OutcomeResolved"}) {
		t.Errorf("the log has %v", got)
	}
	taken(t)(f.Submit(t.Context(), "callback-1", id, f.bank.Send, nil))
	_, err = f.Resolve(t.Context(), "callback-2", with)
	if r := refused(t, err, aggregate.CodeWithdrawalClaimed); r.Holder != "callback-1" {
		t.Errorf("the holder is %q", r.Holder)
	}
	if f.bank.sends() != 0 {
		t.Error("it was sent")
	}
}

func TestB4ReleaseFreesKeyAndWithdrawal(t *testing.T) {
	f, id := inFlight(t)
	s, err := release(t.Context(), f.Ledger, "req-1")
	if err != nil || s.State != aggregate.StateRequested || s.Holder() != "" || len(s.PastClaims) != 1 || s.PastClaims[0].Key != "req-1" || s.PastClaims[0].ReleasedBy != "ann" {
		t.Fatalf("got %+v, %v", s, err)
	}
	_, err = f.Outcome(t.Context(), "req-1")
	refused(t, err, aggregate.CodeNotFound)
	_, err = release(t.Context(), f.Ledger, "req-1")
	refused(t, err, aggregate.CodeNotFound)
	// The freed key may be used for another withdrawal, and another key for this one.
	taken(t)(f.Submit(t.Context(), "req-1", f.request(t, "order-2"), f.bank.Send, nil))
	taken(t)(f.Submit(t.Context(), "req-2", id, f.bank.Send, nil))
	_, err = release(t.Context(), f.Ledger, "req-1")
	refused(t, err, aggregate.CodeAlreadyResolved)
	if s, err := f.ClaimedBy(t.Context(), id); err != nil || s.Holder() != "req-2" {
		t.Errorf("claimed by %+v, %v", s, err)
	}
}

// B4: a release whose answer was lost is said once more, while the same key has claimed the
// withdrawal again and its money has left. That claim is not what the person looked at.
func TestB4ARepeatedReleaseIsNotAboutTheNextClaim(t *testing.T) {
	f, id := inFlight(t)
	word := submissions.Release{By: ann, Reason: "looked", Evidence: "statement 7", Seen: look(t.Context(), f.Ledger, "req-1")}
	if _, err := f.Release(t.Context(), "req-1", word); err != nil {
		t.Fatal(err)
	}
	_, err := f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		_, _ = f.bank.Send(ctx, p)
		return rail.Receipt{}, errLost
	}, nil)
	refused(t, err, aggregate.CodeOutcomeUnknown)
	_, err = f.Release(t.Context(), "req-1", word)
	refused(t, err, aggregate.CodeAttemptRunning)
	_, err = f.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
	refused(t, err, aggregate.CodeWithdrawalClaimed)
	if f.bank.sends() != 1 {
		t.Errorf("%d sends", f.bank.sends())
	}
}

// B4: while the attempt may be running, a release is refused; the only thing that time
// ever does is to allow it.
func TestB4NotWhileTheAttemptMayBeRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, &submissions.Options{SendTimeout: 10 * time.Second, ClockMargin: 5 * time.Second})
		id := f.request(t, "order-1")
		answer := make(chan struct{})
		go func() { // a rail that neither answers nor ends with its context
			_, _ = f.Submit(t.Context(), "req-1", id, func(context.Context, rail.Payment) (rail.Receipt, error) {
				<-answer
				return rail.Receipt{}, errLost
			}, nil)
		}()
		synctest.Wait()
		for _, at := range []time.Duration{0, 10 * time.Second, 5*time.Second - 1} {
			time.Sleep(at)
			_, err := release(t.Context(), f.Ledger, "req-1")
			refused(t, err, aggregate.CodeAttemptRunning)
		}
		time.Sleep(time.Nanosecond)
		if _, err := release(t.Context(), f.Ledger, "req-1"); err != nil {
			t.Fatal(err)
		}
		close(answer)
		synctest.Wait()
		if got := types(t, f.log, id.Stream()); got[len(got)-1] != "LateOutcomeReported" {
			t.Errorf("the log has %v", got)
		}
	})
}

// B5: nothing expires. Months pass, ledgers restart, clocks jump either way, and the
// claim is where it was.
func TestB5TimeMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, id := inFlight(t)
		for _, jump := range []time.Duration{0, time.Hour, 300 * 24 * time.Hour, -600 * 24 * time.Hour} {
			time.Sleep(24 * time.Hour)
			now := func() time.Time { return time.Now().Add(jump) }
			restarted := newLedger(t, f.log, &submissions.Options{Clock: now})
			_, err := restarted.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
			refused(t, err, aggregate.CodeInFlight)
			_, err = restarted.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
			refused(t, err, aggregate.CodeWithdrawalClaimed)
			if list, err := restarted.InFlight(t.Context()); err != nil || len(list) != 1 || list[0].State != aggregate.StateUnknown {
				t.Errorf("after a jump of %s: %+v, %v", jump, list, err)
			}
		}
		if f.bank.sends() != 0 {
			t.Error("it was sent")
		}
	})
}

func TestB6WhoWhyAndOnWhatEvidence(t *testing.T) {
	f, _ := inFlight(t)
	before := size(t, f.log)
	seen := look(t.Context(), f.Ledger, "req-1")
	for _, r := range []submissions.Release{
		{Reason: "r", Evidence: "e", Seen: seen}, {By: ann, Evidence: "e", Seen: seen}, {By: ann, Reason: "r", Seen: seen},
		{By: ann, Reason: " ", Evidence: "e", Seen: seen}, {By: ann, Reason: "r", Evidence: "e"},
	} {
		_, err := f.Release(t.Context(), "req-1", r)
		refused(t, err, aggregate.CodeInvalidRequest)
		_, err = f.Resolve(t.Context(), "req-1", submissions.Resolution{By: r.By, Result: "failed", Reason: r.Reason, Evidence: r.Evidence, Seen: r.Seen})
		refused(t, err, aggregate.CodeInvalidRequest)
	}
	// FAULTS: "sent" needs a reference.
	without := wasSent
	without.Reference = ""
	_, err := f.Resolve(t.Context(), "req-1", without)
	refused(t, err, aggregate.CodeInvalidRequest)
	if n := size(t, f.log); n != before {
		t.Errorf("%d events were written", n-before)
	}
}

// B7: the answer that comes after a person has spoken is evidence, or a dispute.
func TestB7LateAnswers(t *testing.T) {
	receipt := rail.Receipt{Reference: "tx-a"}
	for name, c := range map[string]struct {
		meanwhile func(*testing.T, *fixture, events.WithdrawalID)
		answer    rail.Receipt
		err       error
		code      submissions.Code // "" when the submit goes through
		disputed  bool
	}{
		"resolved as it then answers": {
			meanwhile: func(t *testing.T, f *fixture, _ events.WithdrawalID) {
				taken(t)(f.Resolve(t.Context(), "req-1", wasSent))
			},
			answer: receipt,
		},
		"resolved as failed, and it was sent": {
			meanwhile: func(t *testing.T, f *fixture, _ events.WithdrawalID) {
				taken(t)(resolve(t.Context(), f.Ledger, "req-1", gaveUp))
			},
			answer: receipt, code: aggregate.CodeDisputed, disputed: true,
		},
		"resolved as sent, and it was refused": {
			meanwhile: func(t *testing.T, f *fixture, _ events.WithdrawalID) {
				taken(t)(f.Resolve(t.Context(), "req-1", wasSent))
			},
			err: &rail.Refusal{Reason: "no"}, code: aggregate.CodeDisputed, disputed: true,
		},
		"resolved as failed, and it says nothing": {
			meanwhile: func(t *testing.T, f *fixture, _ events.WithdrawalID) {
				taken(t)(resolve(t.Context(), f.Ledger, "req-1", gaveUp))
			},
			err: errLost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			id := f.request(t, "order-1")
			_, err := f.Submit(t.Context(), "req-1", id, func(context.Context, rail.Payment) (rail.Receipt, error) {
				c.meanwhile(t, f, id)
				return c.answer, c.err
			}, nil)
			if c.code != "" {
				refused(t, err, c.code)
			} else if err != nil {
				t.Error(err)
			}
			got := types(t, f.log, id.Stream())
			if got[len(got)-1] != "LateOutcomeReported" {
				t.Errorf("the log has %v", got)
			}
			list, err := f.InFlight(t.Context())
			if err != nil || (len(list) == 1) != c.disputed {
				t.Errorf("the list has %d: %v", len(list), err)
			}
			// The outcome stands either way, and is replayed.
			first := taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
			if c.disputed {
				with := gaveUp
				if first.Result == events.ResultSent {
					with = wasSent
				}
				taken(t)(resolve(t.Context(), f.Ledger, "req-1", with))
				if list, err := f.InFlight(t.Context()); err != nil || len(list) != 0 {
					t.Errorf("after a person confirmed it, the list has %d: %v", len(list), err)
				}
				// What the rail said is not forgotten with the dispute.
				if s, err := f.Outcome(t.Context(), "req-1"); err != nil || len(s.LateAnswers) != 1 || len(s.ClosedDisputes) != 1 || s.ClosedDisputes[0].ClosedBy != "ann" {
					t.Errorf("the record has %+v, %v", s, err)
				}
				again := taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
				if !first.Disputed || !again.Disputed {
					t.Error("a replay does not say that the rail contradicts it")
				}
				if string(first.Response.Body) != string(again.Response.Body) || !first.ResolvedAt.Equal(again.ResolvedAt) {
					t.Error("confirming it changed the answer")
				}
			}
			if f.bank.sends() != 0 {
				t.Error("it was sent again")
			}
		})
	}
}

// B7: money left after a release. No new claim is taken until a person has looked, and
// the operator's list shows it first.
func TestB7MoneyLeftAfterARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, &submissions.Options{SendTimeout: time.Second, ClockMargin: time.Second})
		older, id := f.request(t, "order-0"), f.request(t, "order-1")
		_, err := f.Submit(t.Context(), "req-0", older, lost, nil)
		refused(t, err, aggregate.CodeOutcomeUnknown)
		time.Sleep(time.Second)
		// A process that was suspended past its deadline, and sends all the same.
		awake := make(chan struct{})
		done := make(chan error)
		go func() {
			_, err := f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
				<-awake
				return f.bank.Send(ctx, p)
			}, nil)
			done <- err
		}()
		refused(t, <-done, aggregate.CodeOutcomeUnknown)
		time.Sleep(time.Minute)
		if _, err := release(t.Context(), f.Ledger, "req-1"); err != nil {
			t.Fatal(err)
		}
		close(awake)
		synctest.Wait()

		_, err = f.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
		refused(t, err, aggregate.CodeDisputed)
		_, err = f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
		refused(t, err, aggregate.CodeDisputed)
		list, err := f.InFlight(t.Context())
		if err != nil || len(list) != 2 || list[0].ID != id || list[0].Dispute == nil || list[0].Dispute.Reference != "tx-a" || list[1].ID != older {
			t.Fatalf("the list is %+v, %v", list, err)
		}
		with := wasSent
		with.Withdrawal = id
		taken(t)(f.Resolve(t.Context(), "req-1", with))
		outcome := taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
		if outcome.Reference != "tx-a" || f.bank.sends() != 1 {
			t.Errorf("got %+v, %d sends", outcome, f.bank.sends())
		}
		if list, err := f.InFlight(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("the list is %+v, %v", list, err)
		}
	})
}

func TestInFlightOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var want []events.RequestKey
		for i := range 5 {
			id := f.request(t, fmt.Sprintf("order-%d", i))
			key := events.RequestKey(fmt.Sprintf("req-%d", 9-i))
			_, err := f.Submit(t.Context(), key, id, lost, nil)
			refused(t, err, aggregate.CodeOutcomeUnknown)
			want = append(want, key)
			time.Sleep(time.Second)
		}
		// Finished ones are not listed, nor those that nobody claimed.
		taken(t)(f.Submit(t.Context(), "paid", f.request(t, "order-8"), f.bank.Send, nil))
		f.request(t, "order-9")
		if list, err := f.InFlight(t.Context()); err != nil || !slices.Equal(holders(list), want) {
			t.Errorf("got %v, %v; want %v", holders(list), err, want)
		}
	})
}
