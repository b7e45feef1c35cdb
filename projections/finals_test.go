package projections

import (
	"context"
	"iter"
	"os"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// counted counts the streams that are read.
type counted struct {
	eventlog.Log
	reads atomic.Int64
}

func (c *counted) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	c.reads.Add(1)
	return c.Log.ReadStream(ctx, stream, from)
}

// told is what a caller is told of a key and a withdrawal, as far as it can be compared.
type told struct {
	Replay, Status any
	Codes          [2]aggregate.Code
}

// A projection of outcomes that lags, is empty, half built, of another version, or lies,
// changes no answer of Submit or Outcome: only what it costs.
func TestFinalsChangeNoAnswer(t *testing.T) {
	t.Parallel()
	log, _ := filled(t, 12, 1500)
	full := opened(t, newDir(t), log)
	caughtUp(t, full)
	pairs := pairsOf(t, log)

	stale := opened(t, newDir(t), log)
	place := place{name: "outcomes", version: outcomes().Version, generation: 1}
	if err := stale.dir.add(outcomes(), place); err != nil {
		t.Fatal(err)
	}
	f, err := stale.file(outcomes(), place)
	if err == nil {
		err = advance(t.Context(), log, []*file{f}, head(t, log)/2, false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	halfBuilt := opened(t, string(stale.dir), log) // the same file, and nothing is live
	if _, found, err := halfBuilt.Final(t.Context(), events.DefaultTenant, pairs[0].key); found || err != nil {
		t.Fatalf("a file that is not live is read (%v)", err)
	}
	wrongVersion := opened(t, newDir(t), log)
	if err := os.WriteFile(wrongVersion.dir.path(place.live()), []byte("outcomes-v9-1.db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lying := opened(t, newDir(t), log)
	caughtUp(t, lying)
	lies, err := lying.live(t.Context(), outcomes())
	if err != nil {
		t.Fatal(err)
	}
	if err := run(lies.writer.Prep("UPDATE outcomes SET result = 'sent', withdrawal = (SELECT o.withdrawal FROM outcomes AS o ORDER BY o.key = outcomes.key, o.withdrawal LIMIT 1)")); err != nil {
		t.Fatal(err)
	}

	want, without := answers(t, log, nil, pairs)
	for _, c := range []struct {
		name   string
		finals submissions.Finals
	}{{"half built", halfBuilt}, {"of another version", wrongVersion}, {"lying", lying}, {"full", full}, {"none", opened(t, newDir(t), log)}} {
		got, reads := answers(t, log, c.finals, pairs)
		if d := gocmp.Diff(want, got); d != "" {
			t.Errorf("%s: other answers:\n%s", c.name, d)
		}
		if c.name == "full" && reads >= without*9/10 {
			t.Errorf("%d streams were read with the outcomes, and %d without: there was nothing to see", reads, without)
		}
	}
	if err := stale.dir.goLive(place); err != nil {
		t.Fatal(err)
	}
	got, _ := answers(t, log, stale, pairs)
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("stale: other answers:\n%s", d)
	}
}

type pair struct {
	tenant events.Tenant
	key    events.RequestKey
	id     events.WithdrawalID
}

// pairsOf is every claim that was ever taken, and each key with the next one's withdrawal.
func pairsOf(t *testing.T, log eventlog.Log) (pairs []pair) {
	t.Helper()
	for r, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		chain := events.NewCodec().Chain(r.Stream)
		if !events.IsRequestKeyStream(r.Stream) || r.Revision > 0 {
			continue
		}
		e, err := chain.Read(stored(&r))
		if err != nil {
			t.Fatal(err)
		}
		k := e.Event.(events.KeyReserved)
		pairs = append(pairs, pair{k.Tenant, k.Key, k.Withdrawal})
	}
	for i := range len(pairs) - 1 {
		pairs = append(pairs, pair{pairs[i].tenant, pairs[i].key, pairs[i+1].id})
	}
	return pairs
}

// answers asks a new ledger about every pair. Nothing that it asks may reach a rail.
func answers(t *testing.T, log eventlog.Log, finals submissions.Finals, pairs []pair) (list []told, reads int64) {
	t.Helper()
	c := &counted{Log: log}
	core, err := submissions.New(c, &submissions.Options{Clock: later, Finals: finals})
	if err != nil {
		t.Fatal(err)
	}
	send := func(_ context.Context, p rail.Payment) (rail.Receipt, error) {
		t.Errorf("withdrawal %s reached the rail", p.Withdrawal)
		return rail.Receipt{}, context.Canceled
	}
	for _, p := range pairs {
		ledger := core.For(p.tenant)
		status, err := ledger.Outcome(t.Context(), p.key)
		code, _ := submissions.CodeOf(err)
		line := told{Status: status.ID, Codes: [2]aggregate.Code{code}}
		if status.Outcome != nil {
			line.Status = []any{status.ID, status.State, status.Since, status.Holder(), status.Outcome.Reference, string(status.Outcome.Response.Body), len(status.PastClaims)}
		}
		if w, err := ledger.ClaimedBy(t.Context(), p.id); err == nil && w.Outcome != nil { // else it might be sent
			o, err := ledger.Submit(t.Context(), p.key, p.id, send, nil)
			line.Codes[1], _ = submissions.CodeOf(err)
			line.Replay = []any{o.Withdrawal, o.Result, o.Reference, string(o.Response.Body), o.Replayed, o.Disputed}
		}
		list = append(list, line)
	}
	return list, c.reads.Load()
}
