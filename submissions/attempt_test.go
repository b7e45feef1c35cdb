package submissions_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog/memory"
	"holdfast/rail"
	"holdfast/submissions"
)

// A7: whatever a rail does that is not a clean answer, the claim stands, nobody sends
// again, and the caller learns why.
func TestA7UnknownOutcomes(t *testing.T) {
	cause := errors.New("connection reset")
	refusal := &rail.Refusal{Reason: "no"}
	var typedNil *rail.Refusal
	for name, c := range map[string]struct {
		send  rail.Sender
		cause error
		says  string
	}{
		"an error":               {func(context.Context, rail.Payment) (rail.Receipt, error) { return rail.Receipt{}, cause }, cause, "connection reset"},
		"a receipt and an error": {func(context.Context, rail.Payment) (rail.Receipt, error) { return rail.Receipt{Reference: "tx"}, cause }, cause, "connection reset"},
		"a timeout": {func(context.Context, rail.Payment) (rail.Receipt, error) {
			return rail.Receipt{}, context.DeadlineExceeded
		},
			context.DeadlineExceeded, "deadline"},
		"a panic":          {func(context.Context, rail.Payment) (rail.Receipt, error) { panic("boom") }, nil, "boom"},
		"a panic with nil": {func(context.Context, rail.Payment) (rail.Receipt, error) { panic(nil) }, nil, "panic"},
		"a goroutine's exit": {func(context.Context, rail.Payment) (rail.Receipt, error) {
			runtime.Goexit()
			return rail.Receipt{}, nil
		}, nil, "goroutine"},
		"no reference":      {func(context.Context, rail.Payment) (rail.Receipt, error) { return rail.Receipt{}, nil }, nil, "no reference"},
		"a blank reference": {func(context.Context, rail.Payment) (rail.Receipt, error) { return rail.Receipt{Reference: " \t"}, nil }, nil, "no reference"},
		"a refusal beside another error": {func(context.Context, rail.Payment) (rail.Receipt, error) {
			return rail.Receipt{}, errors.Join(refusal, cause)
		}, cause, "connection reset"},
		"a refusal with a reference": {func(context.Context, rail.Payment) (rail.Receipt, error) {
			return rail.Receipt{Reference: "tx"}, refusal
		}, nil, "no"},
		"a refusal that is nil": {func(context.Context, rail.Payment) (rail.Receipt, error) { return rail.Receipt{}, typedNil }, nil, ""},
		"an error that panics":  {func(context.Context, rail.Payment) (rail.Receipt, error) { return rail.Receipt{}, panics{} }, nil, "panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			id := f.request(t, "order-1")
			_, err := f.Submit(t.Context(), "req-1", id, c.send, nil)
			r := refused(t, err, aggregate.CodeOutcomeUnknown)
			if c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("%v does not carry its cause", err)
			}
			if !strings.Contains(err.Error(), c.says) || r.Withdrawal != id || r.Key != "req-1" {
				t.Errorf("got %v", err)
			}
			_, err = f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
			if r := refused(t, err, aggregate.CodeInFlight); r.State != aggregate.StateUnknown {
				t.Errorf("the state is %s", r.State)
			}
			_, err = f.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
			refused(t, err, aggregate.CodeWithdrawalClaimed)
			if f.bank.sends() != 0 {
				t.Error("it was sent again")
			}
			list, err := f.InFlight(t.Context())
			if err != nil || len(list) != 1 || list[0].ID != id || list[0].State != aggregate.StateUnknown {
				t.Errorf("in flight: %+v, %v", list, err)
			}
		})
	}
}

type panics struct{}

func (panics) Error() string { panic("an error that cannot be read") }

func TestA8CleanRefusal(t *testing.T) {
	f := newFixture(t, nil)
	id := f.request(t, "order-1")
	_, err := f.Submit(t.Context(), "req-1", id, func(context.Context, rail.Payment) (rail.Receipt, error) {
		return rail.Receipt{}, fmt.Errorf("bank: %w", &rail.Refusal{Reason: "account closed"})
	}, nil)
	r := refused(t, err, aggregate.CodeInFlight)
	var refusal *rail.Refusal
	if r.State != aggregate.StateRefused || !errors.As(err, &refusal) || refusal.Reason != "account closed" {
		t.Errorf("got %+v", r)
	}
	_, err = f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
	if r := refused(t, err, aggregate.CodeInFlight); r.State != aggregate.StateRefused {
		t.Errorf("the state is %s", r.State)
	}
	_, err = f.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
	refused(t, err, aggregate.CodeWithdrawalClaimed)
	if _, err := release(t.Context(), f.Ledger, "req-1"); err != nil {
		t.Fatal(err)
	}
	taken(t)(f.Submit(t.Context(), "req-2", id, f.bank.Send, nil))
	if f.bank.sends() != 1 {
		t.Errorf("%d sends", f.bank.sends())
	}
}

// A claim that took longer to be written than the attempt may last is not followed by a
// call: by then it may be somebody else's already.
func TestA7NoCallAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &hooked{Log: memory.New()}
		f := fixtureOn(t, log, nil)
		id := f.request(t, "order-1")
		log.after = func([]string) error {
			log.after = nil
			time.Sleep(200 * time.Millisecond)
			return nil
		}
		_, err := f.Submit(t.Context(), "req-1", id, f.bank.Send, &submissions.SubmitOptions{Timeout: 100 * time.Millisecond})
		if r := refused(t, err, submissions.CodeOutcomeUnknown); f.bank.sends() != 0 {
			t.Errorf("the rail was called after the deadline (%v)", r)
		}
	})
}

// FAULTS: a send slower than any timeout is still one send, and its answer is recorded
// when it comes, though its caller has gone.
func TestA7SlowSendIsOneSend(t *testing.T) {
	for _, gone := range []string{"the deadline passes", "the caller cancels"} {
		t.Run(gone, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, nil)
				id := f.request(t, "order-1")
				ctx, cancel := context.WithCancel(t.Context())
				if gone == "the caller cancels" {
					time.AfterFunc(time.Second, cancel)
				}
				defer cancel()
				began := time.Now()
				_, err := f.Submit(ctx, "req-1", id, func(_ context.Context, p rail.Payment) (rail.Receipt, error) {
					time.Sleep(3 * time.Hour)
					return f.bank.Send(t.Context(), p)
				}, nil)
				refused(t, err, aggregate.CodeOutcomeUnknown)
				if waited := time.Since(began); waited > 40*time.Second {
					t.Errorf("the caller waited %s", waited)
				}
				for range 5 {
					time.Sleep(30 * time.Minute)
					_, err := f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
					refused(t, err, aggregate.CodeInFlight)
					_, err = f.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
					refused(t, err, aggregate.CodeWithdrawalClaimed)
				}
				if err := f.Close(t.Context()); err != nil { // waits for the answer
					t.Fatal(err)
				}
				s, err := f.Outcome(t.Context(), "req-1")
				if err != nil || s.State != aggregate.StateSent || s.Outcome.Reference != "tx-a" || f.bank.sends() != 1 {
					t.Errorf("%+v, %v, %d sends", s, err, f.bank.sends())
				}
			})
		})
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		id := f.request(t, "order-1")
		answer := make(chan struct{})
		go func() {
			_, _ = f.Submit(t.Context(), "req-1", id, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
				<-answer
				return f.bank.Send(ctx, p)
			}, nil)
		}()
		synctest.Wait()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Close(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed with an attempt under way: %v", err)
		}
		_, err := f.For("other").Submit(t.Context(), "req-2", id, f.bank.Send, nil)
		refused(t, err, aggregate.CodeUnavailable)
		// What is looked up is still answered, truthfully.
		if s, err := f.Outcome(t.Context(), "req-1"); err != nil || s.State != aggregate.StateSending {
			t.Errorf("%+v, %v", s, err)
		}
		close(answer)
		if err := f.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A rail's time that cannot be written down is left out; the outcome is recorded all the same.
func TestRailTimeThatCannotBeWritten(t *testing.T) {
	for name, at := range map[string]time.Time{
		"none":               {},
		"the year 10000":     time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		"the year 0":         time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC),
		"the year 0 in UTC":  time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("east", 3600)),
		"10000 only in UTC":  time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("west", -3600)),
		"before the year -1": time.Date(-2, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			id := f.request(t, "order-1")
			o, err := f.Submit(t.Context(), "req-1", id, func(context.Context, rail.Payment) (rail.Receipt, error) {
				return rail.Receipt{Reference: "tx", Time: at}, nil
			}, nil)
			if err != nil || o.Reference != "tx" || !o.RailTime.IsZero() {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}
