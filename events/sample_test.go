package events

import "time"

// sample has one event of each type, in an order that could be one withdrawal's story.
func sample() []Event {
	amount, err := ParseAmount("10.25")
	if err != nil {
		panic(err)
	}
	fee, err := ParseAmount("0.35")
	if err != nil {
		panic(err)
	}
	id := MintWithdrawalID(DefaultTenant, "alice", "order-1")
	fingerprint := Identity{id, amount, "EUR", "DE89370400440532013000"}.Fingerprint()
	deadline := At(time.Date(2030, 1, 2, 3, 4, 35, 123456000, time.UTC))
	return []Event{
		WithdrawalRequested{DefaultTenant, id, "alice", "order-1", amount, "EUR", "DE89370400440532013000"},
		KeyReserved{DefaultTenant, "req-1", id, fingerprint, 1},
		KeyClaimed{"req-1", fingerprint},
		SendAttempted{1, deadline, string(id), "bank"},
		SendRefused{1, "account closed", &Response{"text/plain", []byte("no")}},
		SendUnconfirmed{1, "connection reset"},
		OutcomeResolved{Key: "req-1", Result: ResultSent, Reference: "tx-1", Source: SourceRail, Attempt: 1,
			Response: Response{"application/octet-stream", []byte{0xff, 0x00, '<', '"'}}},
		OutcomeResolved{Key: "req-1", Result: ResultFailed, Source: SourcePerson, Reason: "looked", Evidence: "statement 7 <é>",
			Response: Response{"application/json", []byte(`{"result":"failed"}`)}},
		Released{"req-1", "looked", "statement 7"},
		LateOutcomeReported{Key: "req-1", Attempt: 1, Result: ResultSent, Reference: "tx-1", Response: &Response{"text/plain", []byte{}}},
		LateOutcomeReported{Key: "req-1", Attempt: 1, Result: ResultUnknown, Detail: "timeout"},
		CopyBegun{"c-1", "sqlite:/ledger/<old>.db", "e0000000-0000-0000-0000-000000000001"},
		CopyAdvanced{"c-1", 4096, 4000},
		CopyCompleted{"c-1", 5000},
		LedgerMoved{"c-2", "esdb://a:2113"},
		LedgerKept{"c-2"},
		OutcomeResolved{Key: "req-1", Result: ResultSent, Reference: "tx-1", Source: SourceRail, Attempt: 1,
			Response: Response{"application/json", []byte(`{}`)}, Fee: fee, RailTime: deadline},
		LateOutcomeReported{Key: "req-1", Attempt: 1, Result: ResultSent, Reference: "tx-1", Fee: fee, RailTime: deadline},
	}
}

func sampleMetadata() Metadata {
	return Metadata{
		RecordedAt: At(time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)), Actor: "ann",
		CorrelationID: "c-1", CausationID: "c-0", Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
}

func sampleID(n int) [16]byte { return [16]byte{0: 0xe0, 15: byte(n + 1)} }
