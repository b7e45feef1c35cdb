package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/submissions"
)

// D2: what was decided in a log of everything that withdrawals live through is decided in
// the same way today.
func TestReplay(t *testing.T) {
	t.Parallel()
	log := lived(t, 4000)
	done, err := audit.Replay(t.Context(), log, nil)
	if err != nil || done.Events < 4000 || done.Decisions < 2000 || done.Unreadable != 0 || len(done.Divergences) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
}

// A decision that today's code would not make is found: here a release while the attempt
// was running, which a log can hold and no command may write.
func TestReplayFindsWhatWouldBeRefused(t *testing.T) {
	t.Parallel()
	log, codec := memory.New(), events.NewCodec()
	ledger, err := submissions.New(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ledger.Request(t.Context(), submissions.Request{Account: "a", Reference: "r", Amount: "1", Currency: "EUR", Destination: "d"})
	if err != nil {
		t.Fatal(err)
	}
	chain := codec.Chain(w.ID.Stream())
	var requested events.WithdrawalRequested
	for e, err := range log.ReadStream(t.Context(), w.ID.Stream(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := chain.Read(events.Stored{Stream: e.Stream, Revision: e.Revision, ID: e.ID, Type: e.Type, Data: e.Data, Metadata: e.Metadata})
		if err != nil {
			t.Fatal(err)
		}
		requested = r.Event.(events.WithdrawalRequested)
	}
	identity := events.Identity{Withdrawal: requested.Withdrawal, Amount: requested.Amount, Currency: requested.Currency, Destination: requested.Destination}
	meta := events.Metadata{RecordedAt: events.At(time.Now()), Actor: "ann"}
	put := func(chain *events.Chain, happened ...events.Event) {
		t.Helper()
		for _, e := range happened {
			at := chain.Next()
			s, _, err := chain.Append(uuid.New(), e, meta)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: s.Stream, At: at, Events: []eventlog.Event{{ID: s.ID, Type: s.Type, Data: s.Data, Metadata: s.Metadata}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	key := codec.Chain(events.RequestKey("k").Stream(events.DefaultTenant))
	put(&key, events.KeyReserved{Tenant: events.DefaultTenant, Key: "k", Withdrawal: w.ID, Fingerprint: identity.Fingerprint(), At: 1})
	put(&chain, events.KeyClaimed{Key: "k", Fingerprint: identity.Fingerprint()},
		events.SendAttempted{Attempt: 1, Deadline: events.At(time.Now().Add(time.Hour)), Token: string(w.ID), Rail: "bank"},
		events.Released{Key: "k", Reason: "r", Evidence: "e"})
	done, err := audit.Replay(t.Context(), log, nil)
	if err != nil || len(done.Divergences) != 1 || done.Divergences[0].Revision != 3 || !strings.Contains(done.Divergences[0].Today, "may still be running") {
		t.Errorf("%+v, %v", done, err)
	}
}
