package submissions_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/submissions"
)

// losing returns a hook that lets an append that has an event of a type lose, the first n
// times, against what cannot be read; it counts.
func losing(eventType string, n int, lost *int) func([]string) error {
	return func(types []string) error {
		if *lost < n && slices.Contains(types, eventType) {
			*lost++
			return &eventlog.Conflict{Stream: "withdrawal"}
		}
		return nil
	}
}

// A cluster decides against appends that cannot be read yet. Who loses to one is not told
// that the withdrawal is free, nor that it is taken: the answer is unavailable, after a
// few tries, and the same key goes through once that append has come to nothing.
func TestClaimedByWhomIsNotKnownYet(t *testing.T) {
	for _, eventType := range []string{"KeyReserved", "KeyClaimed"} {
		t.Run(eventType, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &hooked{Log: memory.New(), apart: true}
				f := fixtureOn(t, log, nil)
				id := f.request(t, "order-1")
				lost := 0
				log.before = losing(eventType, 1<<30, &lost)
				began := time.Now()
				_, err := f.Submit(t.Context(), "req-1", id, f.bank.Send, nil)
				refused(t, err, aggregate.CodeUnavailable)
				if !strings.Contains(err.Error(), "not known yet") || !strings.Contains(err.Error(), "the same key is safe to retry") {
					t.Errorf("%v does not say what is not known, and what is safe", err)
				}
				if waited := time.Since(began); lost > 6 || waited > time.Second {
					t.Errorf("it tried %d times for %s", lost, waited)
				}
				if f.bank.sends() != 0 {
					t.Error("it was sent")
				}
				log.before = nil
				taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
			})
		})
	}
}

// Once the winner can be read, the loser is told who it is.
func TestClaimedByWhomIsKnownSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &hooked{Log: memory.New()}
		f := fixtureOn(t, log, nil)
		id := f.request(t, "order-1")
		winner := newLedger(t, log.Log, nil)
		lost := 0
		hide := losing("KeyClaimed", 2, &lost)
		log.before = func(types []string) error {
			if lost == 1 {
				taken(t)(winner.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
			}
			return hide(types)
		}
		_, err := f.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
		if r := refused(t, err, aggregate.CodeWithdrawalClaimed); r.Holder != "req-1" {
			t.Errorf("the holder is %q", r.Holder)
		}
	})
}

// The rail's answer is recorded however long it takes until its stream can be read, and
// without a loop that never rests.
func TestAnswerThatLosesToWhatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &hooked{Log: memory.New()}
		f := fixtureOn(t, log, &submissions.Options{})
		id := f.request(t, "order-1")
		lost := 0
		log.before = losing("OutcomeResolved", 8, &lost)
		began := time.Now()
		taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
		if waited := time.Since(began); waited < time.Second || f.bank.sends() != 1 {
			t.Errorf("8 losses took %s, %d sends", waited, f.bank.sends())
		}
	})
}

// belated is a log that does not say whether it took an append that has an event of a type,
// lets its repetition lose to what cannot be read, and then turns out to have taken it.
type belated struct {
	eventlog.Log
	eventType string
	tries     int
}

func (l *belated) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	last := appends[len(appends)-1].Events
	if last[0].Type != l.eventType {
		return l.Log.Append(ctx, appends...)
	}
	switch l.tries++; l.tries {
	case 1:
		return 0, eventlog.ErrUnknownResult
	case 2:
		if _, err := l.Log.Append(ctx, appends...); err != nil {
			return 0, err
		}
		return 0, &eventlog.Conflict{Stream: "withdrawal"}
	}
	return l.Log.Append(ctx, appends...)
}

// A7: a claim whose result is not known is not given up for a conflict that cannot be read:
// it may stand after all, and then it is this caller who sends.
func TestA7ConflictThatIsNotSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &belated{Log: memory.New(), eventType: "KeyClaimed"}
		f := fixtureOn(t, &hooked{Log: log, apart: true}, nil)
		id := f.request(t, "order-1")
		taken(t)(f.Submit(t.Context(), "req-1", id, f.bank.Send, nil))
		if f.bank.sends() != 1 || log.tries < 3 {
			t.Errorf("%d sends, %d tries", f.bank.sends(), log.tries)
		}
	})
}
