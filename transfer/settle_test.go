package transfer

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// TestSettled: ledgers that were open on both logs before, and have just seen that they are
// ledgers, pay nothing that the other has paid: the copy waits until they have looked again.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := filled(t), memory.New()
		request := func(l *submissions.Ledger, reference string) events.WithdrawalID {
			s, err := l.Request(t.Context(), submissions.Request{By: by, Account: "alice", Reference: reference, Amount: "1", Currency: "EUR", Destination: "DE89"})
			if err != nil {
				t.Fatal(err)
			}
			return s.ID
		}
		onSource, onTarget := ledger(t, from), ledger(t, to)
		unpaid := request(onSource, "unpaid")
		var left atomic.Int64
		send := func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
			left.Add(1)
			return sent(ctx, p)
		}
		refused := func(when string, err error) {
			if code, _ := submissions.CodeOf(err); code != submissions.CodeUnavailable {
				t.Errorf("%s: got %v, want unavailable", when, err)
			}
		}

		target := &watched{Log: to}
		target.began = func() { // the ledger on the target has looked a moment ago
			if _, err := onTarget.InFlight(t.Context()); err != nil {
				t.Error(err)
			}
		}
		var tried atomic.Int64
		target.appended = func(a eventlog.StreamAppend) {
			id, ok := events.WithdrawalOfStream(a.Stream)
			switch {
			case ok && a.At == 0 && len(a.Events) == 1: // it is requested there, and not claimed yet
				tried.Add(1)
				_, err := onTarget.Submit(t.Context(), events.RequestKey("thief-"+id), id, send, nil)
				refused("half copied", err)
			case a.Events[0].Type == events.CopyCompleted{}.Type():
				tried.Add(1)
				_, err := onSource.Submit(t.Context(), "thief", unpaid, send, nil)
				refused("cut over", err)
			}
		}
		source := &watched{Log: from, appended: func(eventlog.StreamAppend) {}}
		source.began = func() { // and so has the one on the source
			if _, err := onSource.ClaimedBy(t.Context(), unpaid); err != nil {
				t.Error(err)
			}
		}
		if _, err := Copy(t.Context(), at(source, "from"), at(target, "to"), &Options{CutOver: true}); err != nil {
			t.Fatal(err)
		}
		if tried.Load() < 10 || left.Load() != 0 {
			t.Errorf("of %d submits, %d were paid", tried.Load(), left.Load())
		}
		if _, err := onTarget.Submit(t.Context(), "heir", unpaid, send, nil); err != nil || left.Load() != 1 {
			t.Errorf("the target is the ledger: %v", err)
		}
	})
}

// watched is a log that says what is appended to it.
type watched struct {
	eventlog.Log
	// began is called before the custody stream says that the log is no ledger.
	began    func()
	appended func(eventlog.StreamAppend)
}

func (l *watched) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	if t := appends[0].Events[0].Type; strings.HasPrefix(t, "CopyBegun") || strings.HasPrefix(t, "LedgerMoved") {
		l.began()
	}
	p, err := l.Log.Append(ctx, appends...)
	for _, a := range appends {
		if err == nil {
			l.appended(a)
		}
	}
	return p, err
}
