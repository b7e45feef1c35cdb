package projections

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// logOfVersion1 is a log as it was written when an outcome knew nothing of the rail's fee
// and of its time.
func logOfVersion1(t *testing.T) eventlog.Log {
	t.Helper()
	f, err := os.Open("testdata/log-v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log := memory.New()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Stream, ID, Type, Data, Metadata string
			Revision                         uint64
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		_, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: line.Stream, At: line.Revision, Events: []eventlog.Event{
			{ID: uuid.MustParse(line.ID), Type: line.Type, Data: []byte(line.Data), Metadata: []byte(line.Metadata)},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// D3: a log of the version before is read as it was, replays the same bytes, is gone on
// with, and has projections that hold what both versions said.
func TestLogOfBothVersions(t *testing.T) {
	t.Parallel()
	ctx, log := t.Context(), logOfVersion1(t)
	ledger, err := submissions.New(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := newDir(t)
	old := outcomesOfVersion1()
	before := place{name: old.Name, version: old.Version, generation: 1}
	s := opened(t, dir, log)
	if err := s.dir.add(old, before); err != nil {
		t.Fatal(err)
	}
	f, err := open(old, s.dir.path(before.file()))
	if err != nil {
		t.Fatal(err)
	}
	if err := advance(ctx, log, []*file{f}, 0, false, nil); err != nil {
		t.Fatal(err)
	}
	oldRows, _ := dump(t, f)
	if err := f.close(); err != nil || s.dir.goLive(before) != nil {
		t.Fatal(err)
	}

	// What was said of old submissions is said again.
	keys := keysOf(t, log)
	if len(keys) < 7 {
		t.Fatalf("the old log has %d keys", len(keys))
	}
	send := func(_ context.Context, p rail.Payment) (rail.Receipt, error) {
		fee, err := events.ParseAmount("0.35")
		return rail.Receipt{Reference: "tx-new", Fee: fee, Time: time.Date(2026, 12, 1, 0, 0, 0, 7000, time.UTC)}, err
	}
	for _, key := range keys {
		status, err := ledger.Outcome(ctx, key)
		if err != nil || status.Outcome == nil {
			continue
		}
		o, err := ledger.Submit(ctx, key, status.ID, send, nil)
		if err != nil || !o.Replayed || o.Reference == "tx-new" || o.Fee != (events.Amount{}) || !bytes.Equal(o.Response.Body, status.Outcome.Response.Body) {
			t.Errorf("key %s replays %+v, %v", key, o, err)
		}
	}

	// It goes on, in the new version.
	w, err := ledger.Request(ctx, submissions.Request{Account: "a", Reference: "new", Amount: "1", Currency: "EUR", Destination: "d"})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := ledger.Submit(ctx, "new-key", w.ID, send, nil); err != nil || o.Fee.String() != "0.35" || o.RailTime.String() != "2026-12-01T00:00:00.000007Z" {
		t.Fatalf("%+v, %v", o, err)
	}
	// So does a stream that has an outcome of the old version: it is disputed, and resolved.
	if o, err := disputedLate(t, log, ledger, keys); err != nil || o.Result != events.ResultSent {
		t.Errorf("%+v, %v", o, err)
	}
	if report, err := audit.Verify(ctx, log, nil); err != nil || !report.Clean() {
		t.Fatalf("%+v, %v", report, err)
	}
	if done, err := audit.Replay(ctx, log, nil); err != nil || len(done.Divergences) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}

	// The new version's rows hold both; the old version's file is left to the old build.
	caughtUp(t, s)
	o, err := s.Outcome(ctx, events.DefaultTenant, "new-key")
	if err != nil || o.Fee != "0.35" || o.RailTime != "2026-12-01T00:00:00.000007Z" {
		t.Errorf("%+v, %v", o, err)
	}
	if rows, _ := rowsOf(t, s, outcomes()); len(rows) != len(oldRows)+1 {
		t.Errorf("%d rows, and %d before", len(rows), len(oldRows))
	}
	older, newer, c, err := s.Diff(ctx, outcomes())
	if err != nil || older != "outcomes-v1-1.db" || newer != "outcomes-v2-1.db" || !slices.Equal(c.Columns, []string{"outcomes.fee", "outcomes.rail_time"}) || c.Different != 1 {
		t.Errorf("from %s to %s: %+v, %v", older, newer, c, err)
	}
	if dropped, err := s.DropOld(outcomes(), false); err != nil || len(dropped) != 0 {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	if dropped, err := s.DropOld(outcomes(), true); err != nil || !slices.Equal(dropped, []string{"outcomes-v1-1.db"}) {
		t.Errorf("dropped %v, %v", dropped, err)
	}
}

// disputedLate appends a late answer of version 2 that contradicts an outcome of version 1,
// and resolves the dispute.
func disputedLate(t *testing.T, log eventlog.Log, ledger *submissions.Ledger, keys []events.RequestKey) (submissions.Outcome, error) {
	t.Helper()
	status, err := ledger.Outcome(t.Context(), keys[0])
	if err != nil || status.Outcome == nil {
		t.Fatalf("%+v, %v", status, err)
	}
	chain := events.NewCodec().Chain(status.ID.Stream())
	var at events.Timestamp
	for r, err := range log.ReadStream(t.Context(), status.ID.Stream(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := chain.Read(stored(&r))
		if err != nil {
			t.Fatal(err)
		}
		at = e.Metadata.RecordedAt
	}
	next := chain.Next()
	s, _, err := chain.Append(uuid.New(), events.LateOutcomeReported{Key: keys[0], Attempt: 1, Result: events.ResultSent, Reference: "tx-other",
		RailTime: at}, events.Metadata{RecordedAt: at, Actor: "api"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: s.Stream, At: next, Events: []eventlog.Event{
		{ID: s.ID, Type: s.Type, Data: s.Data, Metadata: s.Metadata},
	}}); err != nil {
		t.Fatal(err)
	}
	if s, err := ledger.Outcome(t.Context(), keys[0]); err != nil || s.Dispute == nil || s.Dispute.RailTime != at {
		t.Fatalf("%+v, %v", s, err)
	}
	return ledger.Resolve(t.Context(), keys[0], submissions.Resolution{
		By: submissions.By{Actor: "ann"}, Result: status.Outcome.Result, Reference: status.Outcome.Reference, Reason: "looked", Evidence: "statement 7"})
}

// outcomesOfVersion1 is the projection as it was.
func outcomesOfVersion1() *Projection {
	now := outcomes()
	of1 := &table{name: "outcomes", keys: 2, columns: outcomesTable.columns[:len(outcomesTable.columns)-2]}
	return &Projection{Name: "outcomes", Version: 1, tables: []*table{of1}, project: func(s *Step, rows *changes) {
		today := newChanges([]*table{outcomesTable})
		now.project(s, today)
		for key, values := range today.of[outcomesTable] {
			rows.of[of1][key] = values[:min(len(values), len(of1.columns))]
		}
	}}
}

// keysOf are the keys that ever reserved a withdrawal.
func keysOf(t *testing.T, log eventlog.Log) (keys []events.RequestKey) {
	t.Helper()
	for _, p := range pairsOf(t, log) {
		if !slices.Contains(keys, p.key) {
			keys = append(keys, p.key)
		}
	}
	return keys
}
