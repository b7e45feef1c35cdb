package transfer

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
)

// TestAnswers: a ledger that answers otherwise is found, whether everything is asked about
// or only what is new; and what is not new is then not asked about.
func TestAnswers(t *testing.T) {
	from := filled(t)
	var last eventlog.Recorded // of a withdrawal that was sent
	for r := range from.ReadAll(t.Context(), eventlog.Start) {
		if r.Type == (events.OutcomeResolved{}).Type() {
			last = r
		}
	}
	end := size(t, from)
	for _, tt := range []struct {
		name  string
		after eventlog.Position
		found bool
	}{{"everything", eventlog.Start, true}, {"what is new", last.Position - 1, true}, {"nothing is new", end, false}} {
		a, err := newAnswers(&view{Log: from}, &view{Log: &lying{Log: from, hides: last}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		err = a.compare(t.Context(), &view{Log: from}, tt.after, func(uint64) {})
		var differs *Differs
		if found := errors.As(err, &differs); found != tt.found || found && !strings.Contains(err.Error(), "answers otherwise") {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// lying is a log whose reading of a stream leaves an event out, and what is after it.
type lying struct {
	eventlog.Log
	hides eventlog.Recorded
}

func (l *lying) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range l.Log.ReadStream(ctx, stream, from) {
			if r.Stream == l.hides.Stream && r.Revision >= l.hides.Revision || !yield(r, err) {
				return
			}
		}
	}
}

// TestCutOverIsShort: what was proved before the source was sealed is not verified nor asked
// about again, and what came in between is.
func TestCutOverIsShort(t *testing.T) {
	from, to := filled(t), memory.New()
	most := map[Stage]uint64{} // since the stage began last
	proofs := 0
	report, err := Copy(t.Context(), at(from, "from"), at(to, "to"), atOnce(Options{CutOver: true, Progress: func(s Stage, n uint64) {
		if most[s] = n; s != Asking || n > 0 {
			return
		}
		if proofs++; proofs == 1 {
			if err := live(t.Context(), ledger(t, from), "late"); err != nil {
				t.Error(err)
			}
		}
	}}))
	if err != nil || !report.CutOver {
		t.Fatalf("%+v, %v", report, err)
	}
	// Beside the events, the target's custody stream has CopyAdvanced.
	if most[Asking] != 22 || most[CheckingTarget] != 23 || proofs != 2 {
		t.Errorf("in the last of %d proofs %d events were verified and %d asked about, want 23 and 22", proofs, most[CheckingTarget], most[Asking])
	}
	if report.Withdrawals != 68 || report.Keys != 68 {
		t.Errorf("%+v, want 68 withdrawals and keys", report)
	}
	equal(t, from, to)
}
