package submissions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

var someTime = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func TestA1ClaimIsInTheLogBeforeTheRailHearsOfIt(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	var during []string
	var payment rail.Payment
	outcome := taken(t)(f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		during, payment = types(t, f.log, id.Stream()), p
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the rail call has no deadline")
		}
		return f.bank.Send(ctx, p)
	}, nil))

	if want := []string{"WithdrawalRequested", "KeyClaimed", "SendAttempted"}; !slices.Equal(during, want) {
		t.Errorf("when the rail was called, the log had %v, want %v", during, want)
	}
	if got := types(t, f.log, id.Stream()); !slices.Equal(got[3:], []string{"OutcomeResolved"}) {
		t.Errorf("after the submit the log has %v", got)
	}
	if payment.Withdrawal != id || payment.Amount.String() != "10.25" || payment.Currency != "EUR" ||
		payment.Destination != "secret-order-1" || payment.Account != "alice" || payment.Attempt != 1 || payment.Token == "" {
		t.Errorf("the rail was asked for %+v", payment)
	}
	if outcome.Result != events.ResultSent || outcome.Reference != "tx-a" || outcome.Replayed || outcome.Key != "req-1" {
		t.Errorf("got %+v", outcome)
	}
	if f.bank.sends() != 1 {
		t.Errorf("%d sends", f.bank.sends())
	}
}

func TestA2ReplayIsTheFirstAnswerByteForByte(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	answer := []byte("{\"odd\" : \"\xff\u2028<>\"}\r\n\x00")
	first := taken(t)(f.Submit(t.Context(), "req-1", id, func(context.Context, rail.Payment) (rail.Receipt, error) {
		return rail.Receipt{Reference: "tx", Response: events.Response{MediaType: "application/x-odd; q=1", Body: answer}}, nil
	}, nil))
	// The same ledger, and one that knows nothing but the log.
	for _, ledger := range []*submissions.Ledger{f.Ledger, newLedger(t, f.log, nil)} {
		for range 2 {
			again := taken(t)(ledger.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
			if !again.Replayed || first.Replayed {
				t.Error("first and replay are not told apart")
			}
			if !bytes.Equal(again.Response.Body, answer) {
				t.Errorf("the replay has %q, the rail said %q", again.Response.Body, answer)
			}
			if diff := cmp.Diff(first, again, cmpopts.IgnoreFields(submissions.Outcome{}, "Replayed")); diff != "" {
				t.Errorf("a replay differs (-first +replay):\n%s", diff)
			}
		}
	}
	if f.bank.sends() != 0 {
		t.Error("a replay called the rail")
	}
}

func TestA3ReusedKeyIsAConflictThatTellsNothing(t *testing.T) {
	f := newFixture(t, nil)
	first, second := f.request(t, "order-1"), f.request(t, "order-2")
	original := taken(t)(f.Submit(t.Context(), "req-1", first, f.bank.Send, nil))

	_, err := f.Submit(t.Context(), "req-1", second, f.bank.Send, nil)
	r := refused(t, err, aggregate.CodeKeyReused)
	if r.Withdrawal != first || !slices.Equal(r.Fields, []string{"withdrawal", "destination"}) {
		t.Errorf("it names %s and %v", r.Withdrawal, r.Fields)
	}
	for _, secret := range []string{"secret-order-1", "10.25", original.Reference} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the conflict gives away %q: %v", secret, err)
		}
	}
	// FAULTS: mismatch, then the original call: the stored outcome is untouched.
	again := taken(t)(f.Submit(t.Context(), "req-1", first, f.bank.Send, nil))
	if !bytes.Equal(original.Response.Body, again.Response.Body) || f.bank.sends() != 1 {
		t.Errorf("after the conflict: %q, %d sends", again.Response.Body, f.bank.sends())
	}
	// The second withdrawal is nobody's: another key pays it.
	taken(t)(f.Submit(t.Context(), "req-2", second, f.bank.Send, nil))
}

func TestA4SameKeyWhileInFlight(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	_, err := f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		_, err := f.Submit(ctx, "req-1", id, f.bank.Send, nil)
		r := refused(t, err, aggregate.CodeInFlight)
		if r.State != aggregate.StateSending || r.Since.IsZero() || !r.Until.After(r.Since) {
			t.Errorf("while sending: %+v", r)
		}
		return rail.Receipt{}, errors.New("connection reset")
	}, nil)
	refused(t, err, aggregate.CodeOutcomeUnknown)

	_, err = f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
	if r := refused(t, err, aggregate.CodeInFlight); r.State != aggregate.StateUnknown || !r.Until.IsZero() {
		t.Errorf("afterwards: %+v", r)
	}
	if f.bank.sends() != 0 {
		t.Error("a refused submit called the rail")
	}
}

func TestA5AnotherKeyIsToldTheHolder(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	check := func(when string) {
		t.Helper()
		_, err := f.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
		if r := refused(t, err, aggregate.CodeWithdrawalClaimed); r.Holder != "req-1" || r.Withdrawal != id {
			t.Errorf("%s: %+v", when, r)
		}
		// The loser leaves no trace (A6), and can look the truth up.
		_, err = f.Outcome(t.Context(), "req-2")
		refused(t, err, aggregate.CodeNotFound)
		if s, err := f.ClaimedBy(t.Context(), id); err != nil || s.Holder() != "req-1" {
			t.Errorf("%s: claimed by %+v, %v", when, s, err)
		}
	}
	taken(t)(f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
		check("in flight")
		return f.bank.Send(ctx, p)
	}, nil))
	check("resolved")
	if f.bank.sends() != 1 {
		t.Errorf("%d sends", f.bank.sends())
	}
	// A6: the refused key may be used for another withdrawal.
	taken(t)(f.Submit(t.Context(), "req-2", f.request(t, "order-2"), f.bank.Send, nil))
}

// A6: wherever a refused submit dies, its key has no outcome and no claim, and is good
// for another withdrawal. The refusal that can leave something behind is the one that
// loses between the reservation and the claim.
func TestA6RefusedKeyLeavesNoTrace(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("dies %v", dies), func(t *testing.T) {
			log := &hooked{apart: true}
			f := newFixture(t, nil)
			log.Log = f.log
			id, other := f.request(t, "order-1"), f.request(t, "order-2")
			ctx, die := context.WithCancel(t.Context())
			log.before = func(types []string) error {
				if slices.Contains(types, "KeyClaimed") {
					// Another key is first, in the moment between.
					taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
					log.before = nil
					if dies {
						die()
						return eventlog.ErrUnknownResult
					}
				}
				return nil
			}
			_, err := newLedger(t, log, nil).Submit(ctx, "req-2", id, f.bank.Send, nil)
			if dies {
				refused(t, err, aggregate.CodeUnavailable)
			} else if r := refused(t, err, aggregate.CodeWithdrawalClaimed); r.Holder != "req-1" {
				t.Errorf("the holder is %q", r.Holder)
			}
			if got := types(t, f.log, events.RequestKey("req-2").Stream(events.DefaultTenant)); len(got) != 1 {
				t.Fatalf("the test is pointless: the key has %v reserved", got)
			}
			_, err = f.Outcome(t.Context(), "req-2")
			refused(t, err, aggregate.CodeNotFound)
			taken(t)(f.Submit(t.Context(), "req-2", other, f.bank.Send, nil))
			if s, err := f.Outcome(t.Context(), "req-2"); err != nil || s.ID != other {
				t.Errorf("req-2 stands for %s, %v", s.ID, err)
			}
			die()
		})
	}
}

func TestA9ClaimWithoutAttemptGoesOn(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	s, err := f.ClaimedBy(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := events.Identity{Withdrawal: id, Amount: s.Amount, Currency: s.Currency, Destination: s.Destination}.Fingerprint()
	put(t, f.log, events.RequestKey("req-1").Stream(events.DefaultTenant),
		events.KeyReserved{Tenant: events.DefaultTenant, Key: "req-1", Withdrawal: id, Fingerprint: fingerprint, At: 1})
	put(t, f.log, id.Stream(), events.KeyClaimed{Key: "req-1", Fingerprint: fingerprint})

	if list, err := f.InFlight(t.Context()); err != nil || len(list) != 1 || list[0].State != aggregate.StateClaimed {
		t.Fatalf("in flight: %+v, %v", list, err)
	}
	_, err = f.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
	refused(t, err, aggregate.CodeWithdrawalClaimed)
	taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
	if f.bank.sends() != 1 {
		t.Errorf("%d sends", f.bank.sends())
	}
}

func TestA10RacersGetOneWinner(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("streams apart %v", apart), func(t *testing.T) {
			f := newFixture(t, nil)
			const racers = 64
			for round := range 20 {
				id := f.request(t, fmt.Sprintf("order-%d", round))
				before := f.bank.sends()
				var wg sync.WaitGroup
				results := make([]error, racers)
				for i := range racers {
					// Each racer is a process of its own, as far as it knows.
					ledger := newLedger(t, &hooked{Log: f.log, apart: apart}, nil)
					key := events.RequestKey(fmt.Sprintf("req-%d-%d", round, i))
					wg.Go(func() { _, results[i] = ledger.Submit(t.Context(), key, id, f.bank.Send, nil) })
				}
				wg.Wait()
				s, err := f.ClaimedBy(t.Context(), id)
				if err != nil || s.State != aggregate.StateSent {
					t.Fatalf("%+v, %v", s, err)
				}
				winners := 0
				for _, err := range results {
					if err == nil {
						winners++
					} else if r := refused(t, err, aggregate.CodeWithdrawalClaimed); r.Holder != s.Holder() {
						t.Errorf("a loser was told %q, and the holder is %q", r.Holder, s.Holder())
					}
				}
				if winners != 1 || f.bank.sends() != before+1 {
					t.Fatalf("%d winners, %d sends", winners, f.bank.sends()-before)
				}
			}
		})
	}
}

func TestA11OnlyRequestedWithdrawals(t *testing.T) {
	f := newFixture(t, nil)
	never := events.MintWithdrawalID(events.DefaultTenant, "alice", "never")
	_, err := f.Submit(t.Context(), "req-1", never, f.bank.Send, nil)
	refused(t, err, aggregate.CodeNotFound)
	first, again := f.request(t, "order-1"), f.request(t, "order-1")
	if first != again {
		t.Errorf("two requests got %s and %s", first, again)
	}
	other := order("order-1")
	other.Amount = "11"
	_, err = f.Request(t.Context(), other)
	if r := refused(t, err, aggregate.CodeReferenceReused); r.Withdrawal != first || !slices.Equal(r.Fields, []string{"amount"}) {
		t.Errorf("got %+v", r)
	}
	if n := size(t, f.log); n != 1 {
		t.Errorf("the log has %d events, want 1", n)
	}
}

// A12, FAULTS: a request that was denied burned nothing.
func TestA12ValidationBurnsNothing(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	ctx := t.Context()
	for name, submit := range map[string]func() error{
		"no key":            func() error { _, err := f.Submit(ctx, "", id, f.bank.Send, nil); return err },
		"a blank in a key":  func() error { _, err := f.Submit(ctx, "req-1 ", id, f.bank.Send, nil); return err },
		"a malformed id":    func() error { _, err := f.Submit(ctx, "req-1", "order-1", f.bank.Send, nil); return err },
		"swapped arguments": func() error { _, err := f.Submit(ctx, events.RequestKey(id), "req-1", f.bank.Send, nil); return err },
		"no rail":           func() error { _, err := f.Submit(ctx, "req-1", id, nil, nil); return err },
		"a negative timeout": func() error {
			_, err := f.Submit(ctx, "req-1", id, f.bank.Send, &submissions.SubmitOptions{Timeout: -1})
			return err
		},
		"a timeout of years": func() error {
			_, err := f.Submit(ctx, "req-1", id, f.bank.Send, &submissions.SubmitOptions{Timeout: 1 << 60})
			return err
		},
		"a malformed amount": func() error {
			_, err := f.Submit(ctx, "req-1", id, f.bank.Send, &submissions.SubmitOptions{Restated: submissions.Restated{Amount: "1e1"}})
			return err
		},
		"an actor on two lines": func() error {
			_, err := f.Submit(ctx, "req-1", id, f.bank.Send, &submissions.SubmitOptions{By: submissions.By{Actor: "a\nb"}})
			return err
		},
		"a tenant with a blank": func() error { _, err := f.For("a b").Submit(ctx, "req-1", id, f.bank.Send, nil); return err },
	} {
		t.Log(name)
		refused(t, submit(), aggregate.CodeInvalidRequest)
	}
	if n := size(t, f.log); n != 1 || f.bank.sends() != 0 {
		t.Fatalf("%d events, %d sends", n, f.bank.sends())
	}
	taken(t)(f.Submit(ctx, "req-1", id, f.bank.Send, nil))
}

func TestA14TenantsAreApart(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
	other := f.For("other")
	ctx := t.Context()
	before := size(t, f.log)
	for name, call := range map[string]func() error{
		"submit":     func() error { _, err := other.Submit(ctx, "req-1", id, f.bank.Send, nil); return err },
		"outcome":    func() error { _, err := other.Outcome(ctx, "req-1"); return err },
		"claimed by": func() error { _, err := other.ClaimedBy(ctx, id); return err },
		"history":    func() error { _, err := other.History(ctx, id); return err },
		"resolve": func() error {
			_, err := other.Resolve(ctx, "req-1", submissions.Resolution{By: ann, Withdrawal: id, Result: "failed", Reason: "r", Evidence: "e", Seen: 4})
			return err
		},
		"release": func() error {
			_, err := other.Release(ctx, "req-1", submissions.Release{By: ann, Reason: "r", Evidence: "e", Seen: 4})
			return err
		},
	} {
		t.Log(name)
		refused(t, call(), aggregate.CodeNotFound)
	}
	if n := size(t, f.log); n != before {
		t.Errorf("%d events were written", n-before)
	}
	// The same key, account and reference are another tenant's own.
	w, err := other.Request(ctx, order("order-1"))
	if err != nil || w.ID == id || w.Tenant != "other" {
		t.Fatalf("got %+v, %v", w, err)
	}
	taken(t)(other.Submit(ctx, "req-1", w.ID, f.bank.Send, nil))
	if list, err := other.InFlight(ctx); err != nil || len(list) != 0 {
		t.Errorf("in flight: %v, %v", list, err)
	}
}

func TestA15RestatedDetails(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	_, err := f.Submit(t.Context(), "req-1", id, f.bank.Send, &submissions.SubmitOptions{
		Restated: submissions.Restated{Amount: "10.26", Currency: "EUR", Destination: "elsewhere"},
	})
	if r := refused(t, err, aggregate.CodeDetailsDiffer); !slices.Equal(r.Fields, []string{"amount", "destination"}) || strings.Contains(err.Error(), "10.25") {
		t.Errorf("got %v", err)
	}
	if n := size(t, f.log); n != 1 {
		t.Errorf("the log has %d events", n)
	}
	taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, &submissions.SubmitOptions{
		Restated: submissions.Restated{Amount: "10.250", Currency: "EUR", Destination: "secret-order-1"},
	}))
}
