package simulated_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"holdfast/events"
	"holdfast/rail"
	"holdfast/rail/simulated"
)

// wantKnowledge checks what the rail knows of the withdrawal.
func wantKnowledge(t *testing.T, r *simulated.Rail, w events.WithdrawalID, want rail.Knowledge) {
	t.Helper()
	if got, err := r.LookUp(t.Context(), w); got != want || err != nil {
		t.Errorf("LookUp(%q) = %+v, %v, want %+v", w, got, err, want)
	}
}

// counted is a rail that fails as told, at noon, with references r1, r2 and so on.
func counted(t *testing.T, fault func(rail.Payment) simulated.Fault) *simulated.Rail {
	t.Helper()
	n := 0
	r, _ := open(t, &simulated.Options{
		Fault: fault,
		Now:   func() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) },
		NewReference: func() string {
			n++
			return "r" + string(rune('0'+n))
		},
	})
	return r
}

func TestLookUpMatchesExactly(t *testing.T) {
	r := counted(t, nil)
	if _, err := r.Send(t.Context(), payment("w10")); err != nil {
		t.Fatal(err)
	}
	wantKnowledge(t, r, "w10", rail.Knowledge{
		Verdict: rail.VerdictSent, Reference: "r1", Attempt: 1,
		Detail: "attempt 1 left at 2026-01-02T12:00:00.000000Z",
	})
	for _, w := range []events.WithdrawalID{"w1", "w100", "W10", "w10 ", "10", ""} {
		wantKnowledge(t, r, w, rail.Knowledge{
			Verdict: rail.VerdictUnknown,
			Detail:  "the withdrawal is not in the rail's book; a payment may still be on its way",
		})
	}
}

func TestLookUpTellsOfADoubleSend(t *testing.T) {
	r := counted(t, nil)
	for attempt := range 2 {
		p := payment("w1")
		p.Attempt = attempt + 1
		if _, err := r.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	wantKnowledge(t, r, "w1", rail.Knowledge{
		Verdict: rail.VerdictSent, Reference: "r1", Attempt: 1,
		Detail: "2 payments left for this withdrawal; first, attempt 1 left at 2026-01-02T12:00:00.000000Z",
	})
}

func TestLookUpOfARefusal(t *testing.T) {
	refused := func(attempt string) string {
		return "attempt " + attempt + " was refused at 2026-01-02T12:00:00.000000Z: the simulated rail was told to refuse"
	}
	const refuse, lost, none = simulated.FaultRefuse, simulated.FaultErrorBefore, simulated.FaultNone
	for _, tt := range []struct {
		name     string
		attempts []simulated.Fault
		want     rail.Knowledge
	}{
		{"refused", []simulated.Fault{refuse},
			rail.Knowledge{Verdict: rail.VerdictRefused, Attempt: 1, Detail: refused("1")}},
		{"refused twice", []simulated.Fault{refuse, refuse},
			rail.Knowledge{Verdict: rail.VerdictRefused, Attempt: 2, Detail: refused("2")}},
		{"a later attempt is not in the book: only the first was refused", []simulated.Fault{refuse, lost},
			rail.Knowledge{Verdict: rail.VerdictRefused, Attempt: 1, Detail: refused("1")}},
		{"an earlier attempt is not in the book: it may still come", []simulated.Fault{lost, refuse},
			rail.Knowledge{Verdict: rail.VerdictUnknown,
				Detail: refused("2") + "; an earlier attempt is not in the rail's book, and may still be on its way"}},
		{"refused, then sent", []simulated.Fault{refuse, none},
			rail.Knowledge{Verdict: rail.VerdictSent, Reference: "r1", Attempt: 2,
				Detail: "attempt 2 left at 2026-01-02T12:00:00.000000Z"}},
		{"sent, then refused", []simulated.Fault{none, refuse},
			rail.Knowledge{Verdict: rail.VerdictSent, Reference: "r1", Attempt: 1,
				Detail: "attempt 1 left at 2026-01-02T12:00:00.000000Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := counted(t, func(p rail.Payment) simulated.Fault { return tt.attempts[p.Attempt-1] })
			for i := range tt.attempts {
				p := payment("w1")
				p.Attempt = i + 1
				// What each send returns is TestFaults' business.
				_, _ = r.Send(t.Context(), p)
			}
			wantKnowledge(t, r, "w1", tt.want)
		})
	}
}

func TestLookUpErrors(t *testing.T) {
	r, path := open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.LookUp(ctx, "w1"); !errors.Is(err, context.Canceled) {
		t.Errorf("LookUp of an ended context = %v, want its error", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := r.LookUp(t.Context(), "w1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("LookUp without a book = %v, want fs.ErrNotExist", err)
	}
	if _, err := r.Send(t.Context(), payment("w1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Send without a book = %v, want fs.ErrNotExist, and no new book", err)
	}
}
