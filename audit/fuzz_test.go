package audit_test

import (
	"testing"
	"time"

	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
)

// Whatever is in a log, verify gets to its end, counts it, and says where each thing that
// it finds is. An event of nobody's making in a stream of ours is always found.
func FuzzVerify(f *testing.F) {
	id := events.MintWithdrawalID(events.DefaultTenant, "alice", "order-1")
	for _, stream := range []string{id.Stream(), "withdrawal-", "withdrawal-x", events.RequestKey("k").Stream(events.DefaultTenant), "requestkey-", "account-a", "x"} {
		f.Add(stream, "WithdrawalRequested", []byte(`{}`), []byte(`{}`), "KeyReserved", []byte(`{"withdrawal":"`+id+`"}`), []byte(`{"schema":1}`))
		f.Add(stream, "\xff", []byte("\x00"), []byte(nil), "KeyClaimed", []byte(`null`), []byte(`,"digest":"`))
	}
	chain := events.NewCodec().Chain(id.Stream())
	sound := []eventlog.Event{}
	amount, err := events.ParseAmount("10")
	if err != nil {
		f.Fatal(err)
	}
	identity := events.Identity{Withdrawal: id, Amount: amount, Currency: "EUR", Destination: "there"}
	for _, e := range []events.Event{
		events.WithdrawalRequested{Tenant: events.DefaultTenant, Withdrawal: id, Account: "alice", Reference: "order-1", Amount: amount, Currency: "EUR", Destination: "there"},
		events.KeyClaimed{Key: "k", Fingerprint: identity.Fingerprint()},
	} {
		stored, _, err := chain.Append([16]byte{byte(len(sound)), 1}, e, events.Metadata{Actor: "ann", RecordedAt: events.At(time.Unix(1, 0))})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stored.Stream, stored.Type, stored.Data, stored.Metadata, stored.Type, stored.Data, stored.Metadata)
		sound = append(sound, eventlog.Event{ID: stored.ID, Type: stored.Type, Data: stored.Data, Metadata: stored.Metadata})
	}
	f.Fuzz(func(t *testing.T, stream, type1 string, data1, meta1 []byte, type2 string, data2, meta2 []byte) {
		log := memory.New()
		defer log.Close()
		if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: id.Stream(), Events: sound[:1]}); err != nil {
			t.Fatal(err)
		}
		at := uint64(0)
		if stream == id.Stream() {
			at = 1
		}
		wild := []eventlog.Event{{ID: [16]byte{1}, Type: type1, Data: data1, Metadata: meta1}, {ID: [16]byte{2}, Type: type2, Data: data2, Metadata: meta2}}
		if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: stream, At: at, Events: wild}); err != nil {
			return // the log does not take such an event at all
		}
		report, err := audit.Verify(t.Context(), log, nil)
		if err != nil || report.Events != 3 || report.Clean() {
			t.Fatalf("%+v, %v", report, err)
		}
		for _, found := range report.Findings {
			if found.Code == "" || found.Reason == "" {
				t.Errorf("%+v says nothing", found)
			}
		}
	})
}
