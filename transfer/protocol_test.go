package transfer

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/submissions"
)

// TestNeverTwoLedgers lets people copy, move and give up between three logs, any of it cut
// off at any write to a custody stream, and any other of it happening in between: after
// each write at most one of the logs with a withdrawal in it is a ledger.
func TestNeverTwoLedgers(t *testing.T) {
	for range 20 { // times the usual number of checks
		neverTwoLedgers(t)
	}
}

func neverTwoLedgers(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		m := &moves{T: t, cut: errors.New("cut off")}
		for i := range m.logs {
			m.logs[i] = &hooked{Log: memory.New(), moves: m}
		}
		l, err := submissions.New(m.logs[0].Log, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := l.Request(context.Background(), submissions.Request{By: by, Account: "alice", Reference: "1", Amount: "1", Currency: "EUR", Destination: "DE89"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Submit(context.Background(), "k", w.ID, sent, nil); err != nil {
			t.Fatal(err)
		}
		m.logs[0].withdrawals = true
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			m.step()
		}
		moved += m.moved
	})
	if moved == 0 {
		t.Error("no ledger was ever moved")
	}
}

// moves are three logs, and what people do with them.
type moves struct {
	*rapid.T
	logs         [3]*hooked
	depth, moved int
	cut          error
	story        []string
}

// step does one thing, which may be cut off, and within which others may happen.
func (m *moves) step() {
	from, to := rapid.IntRange(0, 2).Draw(m.T, "from"), rapid.IntRange(0, 2).Draw(m.T, "to")
	what := rapid.SampledFrom([]string{"copy", "move", "move", "take back"}).Draw(m.T, "what")
	m.depth++
	defer func() { m.depth-- }()
	a, b := at(m.logs[from], fmt.Sprint(from)), at(m.logs[to], fmt.Sprint(to))
	m.tell("%s %d to %d begins", what, from, to)
	var report Report
	var err error
	if what == "take back" {
		_, err = TakeBack(context.Background(), a, b, atOnce(Options{}))
	} else {
		report, err = Copy(context.Background(), a, b, atOnce(Options{CutOver: what == "move"}))
	}
	if report.CutOver && !report.Already {
		m.moved++
	}
	m.tell("%s %d to %d ends: %v", what, from, to, err)
	var refused *Refused
	var busy *Busy
	if err != nil && !errors.As(err, &refused) && !errors.As(err, &busy) && !errors.Is(err, m.cut) {
		m.fail("it ended with %v", err)
	}
}

func (m *moves) tell(format string, args ...any) {
	m.story = append(m.story, fmt.Sprintf(format, args...))
}

func (m *moves) fail(format string, args ...any) {
	for _, line := range m.story {
		m.Log(line)
	}
	m.Fatalf(format, args...)
}

// check counts the ledgers.
func (m *moves) check() {
	var ledgers []int
	for i, l := range m.logs {
		custody, _, err := submissions.Custody(context.Background(), l)
		if err != nil {
			m.fail("log %d: %v", i, err)
		}
		if l.withdrawals && custody.Act() == nil {
			ledgers = append(ledgers, i)
		}
	}
	if len(ledgers) > 1 {
		m.fail("the logs %v are ledgers", ledgers)
	}
}

// hooked is a log at whose custody something else may happen first.
type hooked struct {
	eventlog.Log
	*moves
	withdrawals bool // are in it
}

func (l *hooked) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	if appends[0].Stream != events.CustodyStream {
		l.withdrawals = true
		return l.Log.Append(ctx, appends...)
	}
	switch rapid.SampledFrom([]string{"", "", "", "cut", "another"}).Draw(l.moves.T, "before "+appends[0].Events[0].Type) {
	case "cut":
		return 0, l.cut
	case "another":
		if l.depth < 3 {
			l.step()
		}
	}
	p, err := l.Log.Append(ctx, appends...)
	l.tell("%s: %v", appends[0].Events[0].Type, err)
	l.check()
	return p, err
}
