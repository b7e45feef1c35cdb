package audit_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// story fills a log with one of everything that happens to withdrawals.
func story(t *testing.T) (*memory.Log, events.WithdrawalID) {
	t.Helper()
	log := memory.New()
	ctx := t.Context()
	l, err := submissions.New(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	request := func(i int) events.WithdrawalID {
		w, err := l.Request(ctx, submissions.Request{Account: "alice", Reference: fmt.Sprintf("order-%d", i), Amount: "10", Currency: "EUR", Destination: "there"})
		if err != nil {
			t.Fatal(err)
		}
		return w.ID
	}
	by := submissions.By{Actor: "ann"}
	lost := func(context.Context, rail.Payment) (rail.Receipt, error) { return rail.Receipt{}, errors.New("lost") }
	sent := func(context.Context, rail.Payment) (rail.Receipt, error) { return rail.Receipt{Reference: "tx"}, nil }
	paid := request(1)
	if _, err := l.Submit(ctx, "req-1", paid, sent, nil); err != nil {
		t.Fatal(err)
	}
	again := request(2)
	if _, err := l.Submit(ctx, "req-2", again, lost, nil); err == nil {
		t.Fatal("the send was to be lost")
	}
	if _, err := l.Release(ctx, "req-2", submissions.Release{By: by, Reason: "looked", Evidence: "book", Seen: 4}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Submit(ctx, "req-2", request(3), sent, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Resolve(ctx, "req-3", submissions.Resolution{By: by, Withdrawal: again, Result: events.ResultFailed, Reason: "looked", Evidence: "book", Seen: 5}); err != nil {
		t.Fatal(err)
	}
	return log, paid
}

func verify(t *testing.T, log eventlog.Log) audit.Report {
	t.Helper()
	report, err := audit.Verify(t.Context(), log, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func codes(r audit.Report) []string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.Code)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestVerifyOfACleanLog(t *testing.T) {
	log, _ := story(t)
	var told uint64
	report, err := audit.Verify(t.Context(), log, func(n uint64) { told = n })
	if err != nil || !report.Clean() {
		t.Fatalf("found %+v, %v", report.Findings, err)
	}
	if report.Events != 19 || report.Streams != 6 || told != report.Events {
		t.Errorf("looked at %d events of %d streams, told of %d", report.Events, report.Streams, told)
	}
	if report := verify(t, memory.New()); !report.Clean() || report.Events != 0 {
		t.Errorf("an empty log: %+v", report)
	}
}

// D4: content change, gap, fork, truncation and unknown version are told apart.
func TestVerifyTellsFindingsApart(t *testing.T) {
	drop := func(revision uint64) func(eventlog.Recorded) (eventlog.Recorded, bool) {
		return func(r eventlog.Recorded) (eventlog.Recorded, bool) { return r, r.Revision != revision }
	}
	for name, c := range map[string]struct {
		spoil func(eventlog.Recorded) (eventlog.Recorded, bool)
		want  []string
	}{
		"content": {func(r eventlog.Recorded) (eventlog.Recorded, bool) {
			if r.Revision == 3 { // the last event: nothing comes after it to notice
				r.Data = slices.Concat(r.Data[:20], []byte("x"), r.Data[21:])
			}
			return r, true
		}, []string{"content-changed"}},
		// In a log without missing positions, what is missing from a stream is missing
		// from the log, too; of a stream's end only that is left to be seen.
		"gap":           {drop(1), []string{"gap", "truncated"}},
		"truncated":     {drop(0), []string{"truncated"}},
		"truncated end": {drop(3), []string{"truncated"}},
		"unknown version": {func(r eventlog.Recorded) (eventlog.Recorded, bool) {
			if r.Revision == 2 {
				r = resealed(t, r, func(m *events.Metadata) { m.Schema = 9 })
			}
			return r, true
		}, []string{"unknown-version"}},
		"fork": {func(r eventlog.Recorded) (eventlog.Recorded, bool) {
			if r.Revision == 2 {
				r = resealed(t, r, func(m *events.Metadata) { m.Prev = m.Digest })
			}
			return r, true
		}, []string{"fork"}},
	} {
		t.Run(name, func(t *testing.T) {
			log, paid := story(t)
			report := verify(t, &spoiled{Log: log, stream: paid.Stream(), spoil: c.spoil})
			if got := codes(report); !slices.Equal(got, c.want) {
				t.Errorf("found %+v, want %v", report.Findings, c.want)
			}
			if report.Events < 16 {
				t.Errorf("a finding stopped the walk after %d events", report.Events)
			}
		})
	}
}

// An event that the log has and its stream does not, as when an index has lost it, is
// found: commands take it for not there.
func TestVerifyFindsWhatCannotBeReached(t *testing.T) {
	log, paid := story(t)
	for _, hidden := range []string{paid.Stream(), events.RequestKey("req-1").Stream(events.DefaultTenant)} {
		report := verify(t, &unindexed{Log: log, hidden: hidden})
		if got := codes(report); !slices.Contains(got, audit.CodeUnreachable) {
			t.Errorf("found %+v", report.Findings)
		}
	}
}

// unindexed is a log in which one stream is not found by its name.
type unindexed struct {
	*memory.Log
	hidden string
}

func (u *unindexed) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	if stream == u.hidden {
		stream = "nothing"
	}
	return u.Log.ReadStream(ctx, stream, from)
}

// What each stream says by itself may be sound while they contradict each other.
func TestVerifyComparesStreams(t *testing.T) {
	log, paid := story(t)
	amount, _ := events.ParseAmount("10")
	fingerprint := events.Identity{Withdrawal: paid, Amount: amount, Currency: "EUR", Destination: "there"}.Fingerprint()
	put(t, log, "withdrawal-"+string(paid), false, events.LateOutcomeReported{Key: "req-1", Attempt: 1, Result: events.ResultUnknown})
	if report := verify(t, log); !report.Clean() {
		t.Fatalf("found %+v", report.Findings)
	}

	t.Run("a claim that its key does not know of", func(t *testing.T) {
		log, _ := story(t)
		id := requested(t, log)
		put(t, log, id.Stream(), false, events.KeyClaimed{Key: "stray", Fingerprint: events.Identity{Withdrawal: id, Amount: amount, Currency: "EUR", Destination: "there"}.Fingerprint()})
		if got := codes(verify(t, log)); !slices.Equal(got, []string{audit.CodeClaimUnreserved}) {
			t.Errorf("found %v", got)
		}
	})
	t.Run("a key that is live on two withdrawals", func(t *testing.T) {
		log, _ := story(t)
		id := requested(t, log)
		own := events.Identity{Withdrawal: id, Amount: amount, Currency: "EUR", Destination: "there"}.Fingerprint()
		put(t, log, events.RequestKey("req-1").Stream(events.DefaultTenant), false,
			events.KeyReserved{Tenant: events.DefaultTenant, Key: "req-1", Withdrawal: id, Fingerprint: own, At: 1})
		put(t, log, id.Stream(), false, events.KeyClaimed{Key: "req-1", Fingerprint: own})
		if got := codes(verify(t, log)); !slices.Equal(got, []string{audit.CodeKeyBoundTwice}) {
			t.Errorf("found %v", got)
		}
	})
	t.Run("a reservation beyond its withdrawal's end", func(t *testing.T) {
		log, paid := story(t)
		put(t, log, events.RequestKey("req-9").Stream(events.DefaultTenant), false,
			events.KeyReserved{Tenant: events.DefaultTenant, Key: "req-9", Withdrawal: paid, Fingerprint: fingerprint, At: 9})
		if got := codes(verify(t, log)); !slices.Equal(got, []string{"truncated"}) {
			t.Errorf("found %v", got)
		}
	})
	t.Run("an order that can not be", func(t *testing.T) {
		log, paid := story(t)
		put(t, log, paid.Stream(), false, events.Released{Key: "req-1", Reason: "r", Evidence: "e"})
		if got := codes(verify(t, log)); !slices.Equal(got, []string{"impossible-order"}) {
			t.Errorf("found %v", got)
		}
	})
	t.Run("a stream that is none of ours", func(t *testing.T) {
		log, _ := story(t)
		put(t, log, "orders-1", true, events.Released{Key: "req-1", Reason: "r", Evidence: "e"})
		if got := codes(verify(t, log)); !slices.Equal(got, []string{audit.CodeForeignStream}) {
			t.Errorf("found %v", got)
		}
	})
}

func requested(t *testing.T, log eventlog.Log) events.WithdrawalID {
	t.Helper()
	l, err := submissions.New(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.Request(t.Context(), submissions.Request{Account: "alice", Reference: "stray", Amount: "10", Currency: "EUR", Destination: "there"})
	if err != nil {
		t.Fatal(err)
	}
	return w.ID
}

// put appends events to a stream, past every decision.
func put(t *testing.T, log eventlog.Log, stream string, fresh bool, history ...events.Event) {
	t.Helper()
	chain := events.NewCodec().Chain(stream)
	if !fresh {
		for r, err := range log.ReadStream(t.Context(), stream, 0) {
			if err == nil {
				_, err = chain.Read(events.Stored{Stream: r.Stream, Revision: r.Revision, ID: r.ID, Type: r.Type, Data: r.Data, Metadata: r.Metadata})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	a := eventlog.StreamAppend{Stream: stream, At: chain.Next()}
	for i, e := range history {
		s, _, err := chain.Append([16]byte{9, byte(i)}, e, events.Metadata{RecordedAt: events.At(time.Unix(1, 0)), Actor: "test"})
		if err != nil {
			t.Fatal(err)
		}
		a.Events = append(a.Events, eventlog.Event{ID: s.ID, Type: s.Type, Data: s.Data, Metadata: s.Metadata})
	}
	if _, err := log.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// resealed returns the event with other metadata and a digest that fits: what somebody
// would store who knows how the digest is made. It is made here from its description
// alone, which so is shown to be enough.
func resealed(t *testing.T, r eventlog.Recorded, change func(*events.Metadata)) eventlog.Recorded {
	t.Helper()
	var m events.Metadata
	if err := json.Unmarshal(r.Metadata, &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	m.Digest = ""
	open, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	open = open[:len(open)-1]
	digest := sha256.New()
	for _, field := range []string{"holdfast/event/v1", r.Stream, fmt.Sprint(r.Revision), hex.EncodeToString(r.ID[:]), r.Type, string(r.Data), string(open)} {
		if err := binary.Write(digest, binary.BigEndian, uint64(len(field))); err != nil {
			t.Fatal(err)
		}
		digest.Write([]byte(field))
	}
	r.Metadata = fmt.Appendf(nil, `%s,"digest":"%x"}`, open, digest.Sum(nil))
	return r
}

// spoiled is a log in which events of one stream read differently.
type spoiled struct {
	*memory.Log
	stream string
	spoil  func(eventlog.Recorded) (eventlog.Recorded, bool)
}

func (s *spoiled) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return s.through(s.Log.ReadStream(ctx, stream, from))
}

func (s *spoiled) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return s.through(s.Log.ReadAll(ctx, after))
}

func (s *spoiled) through(seq iter.Seq2[eventlog.Recorded, error]) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range seq {
			keep := true
			if err == nil && r.Stream == s.stream {
				r, keep = s.spoil(r)
			}
			if keep && !yield(r, err) {
				return
			}
		}
	}
}

// The custody stream is a stream like the others: sound or not, and no foreign one.
func TestVerifyCustody(t *testing.T) {
	chain := events.NewCodec().Chain(events.CustodyStream)
	for name, tt := range map[string]struct {
		event events.Event
		want  []string
	}{
		"sound":      {events.LedgerMoved{Copy: "c-1", To: "elsewhere"}, nil},
		"impossible": {events.CopyCompleted{Copy: "c-1"}, []string{string(events.FaultOrder)}},
	} {
		log, _ := story(t)
		chain := chain
		s, _, err := chain.Append([16]byte{1}, tt.event, events.Metadata{RecordedAt: events.At(time.Now()), Actor: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: s.Stream, Events: []eventlog.Event{{ID: s.ID, Type: s.Type, Data: s.Data, Metadata: s.Metadata}}}); err != nil {
			t.Fatal(err)
		}
		if got := codes(verify(t, log)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
