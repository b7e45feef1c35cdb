package events

import (
	"testing"
	"time"
)

func BenchmarkChain(b *testing.B) {
	amount, _ := ParseAmount("10.25")
	id := MintWithdrawalID(DefaultTenant, "alice", "order-1")
	identity := Identity{id, amount, "EUR", "DE89370400440532013000"}
	m := Metadata{RecordedAt: At(time.Unix(1_800_000_000, 0)), Actor: "api:shop"}
	sample := []Event{
		WithdrawalRequested{DefaultTenant, id, "alice", "order-1", amount, "EUR", "DE89370400440532013000"},
		KeyClaimed{"req-1", identity.Fingerprint()},
		SendAttempted{1, At(time.Unix(1_800_000_030, 0)), string(id), "bank"},
		OutcomeResolved{Key: "req-1", Result: ResultSent, Reference: "tx-1", Source: SourceRail, Attempt: 1,
			Response: Response{"application/json", []byte(`{"reference":"tx-1","status":"sent"}`)}},
	}
	codec := NewCodec()
	var stored []Stored
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			stored = stored[:0]
			chain := codec.Chain(id.Stream())
			for _, e := range sample {
				s, _, err := chain.Append([16]byte{1}, e, m)
				if err != nil {
					b.Fatal(err)
				}
				stored = append(stored, s)
			}
		}
	})
	for _, s := range stored {
		b.Logf("%s %s %d", s.Data, s.Metadata, len(s.Data)+len(s.Metadata))
	}
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			chain := codec.Chain(id.Stream())
			for _, s := range stored {
				if _, err := chain.Read(s); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
