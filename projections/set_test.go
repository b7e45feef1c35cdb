package projections

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/events"
	"holdfast/submissions"
)

// What the projections say is what the ledger says, which reads the log (D1).
func TestAgreesWithTheLedger(t *testing.T) {
	t.Parallel()
	log, _ := filled(t, 3, 4000)
	s := opened(t, newDir(t), log)
	caughtUp(t, s)
	core, err := submissions.New(log, &submissions.Options{Clock: later})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, tenant := range []events.Tenant{events.DefaultTenant, "other"} {
		ledger := core.For(tenant)
		waiting, err := s.InFlight(ctx, tenant)
		if err != nil {
			t.Fatal(err)
		}
		truth, err := ledger.InFlight(ctx)
		if err != nil || len(truth) == 0 {
			t.Fatalf("%d in flight, %v", len(truth), err)
		}
		if len(waiting) != len(truth) {
			t.Fatalf("tenant %s: %d in flight, the ledger has %d", tenant, len(waiting), len(truth))
		}
		for i, w := range truth {
			got := waiting[i]
			state := w.State
			if w.Claim == nil {
				state = ""
			}
			if got.Withdrawal != w.ID || got.Key != w.Holder() || got.State != state || !got.Since.Equal(w.WaitingSince()) ||
				got.Disputed != (w.Dispute != nil) || got.Amount != w.Amount.String() || got.Events != w.Events {
				t.Fatalf("tenant %s, line %d: %+v, the ledger has %+v", tenant, i, got, w)
			}
		}
		lines := 0
		for filter := (Filter{Limit: 37}); ; {
			page, err := s.Withdrawals(ctx, tenant, filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range page.Withdrawals {
				lines++
				agrees(t, s, ledger, tenant, line)
			}
			if filter.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		if lines < 20 {
			t.Errorf("tenant %s has %d withdrawals", tenant, lines)
		}
	}
}

// agrees compares what is said of one withdrawal and its holder.
func agrees(t *testing.T, s *Set, ledger *submissions.Ledger, tenant events.Tenant, line Withdrawal) {
	t.Helper()
	w, err := ledger.ClaimedBy(t.Context(), line.ID)
	if err != nil {
		t.Fatal(err)
	}
	if line.State != w.State || !line.Since.Equal(w.Since) || line.Key != w.Holder() || line.Disputed != (w.Dispute != nil) ||
		line.Account != w.Account || line.Reference != w.Reference || line.Amount != w.Amount.String() || line.Events != w.Events {
		t.Fatalf("%+v, the ledger has %+v", line, w)
	}
	holders, err := s.Holders(t.Context(), tenant, line.ID)
	if err != nil {
		t.Fatal(err)
	}
	var keys []events.RequestKey
	for _, h := range holders {
		keys = append(keys, h.Key)
	}
	var truth []events.RequestKey
	if w.Claim != nil {
		truth = append(truth, w.Claim.Key)
	}
	for _, past := range slices.Backward(w.PastClaims) {
		truth = append(truth, past.Key)
	}
	if !slices.Equal(keys, truth) {
		t.Fatalf("holders of %s: %v, the ledger has %v", line.ID, keys, truth)
	}
	for i, key := range keys {
		o, err := s.Outcome(t.Context(), tenant, key)
		if holds := i == 0 && w.Claim != nil; !holds {
			if code, _ := submissions.CodeOf(err); code != aggregate.CodeNotFound {
				t.Fatalf("key %s holds nothing: %+v, %v", key, o, err)
			}
			continue
		}
		switch {
		case err != nil || o.Withdrawal != line.ID:
			t.Fatalf("key %s: %+v, %v", key, o, err)
		case w.Outcome == nil && o.Result != "", w.Outcome != nil && (o.Result != w.Outcome.Result || o.Reference != w.Outcome.Reference || !slices.Equal(o.Response.Body, w.Outcome.Response.Body)):
			t.Fatalf("key %s: %+v, the ledger has %+v", key, o, w.Outcome)
		}
	}
}

// However the log is cut into batches, wherever it was stopped, the rows are the same
// (D6), and the same as without any of the old files (D1).
func TestRowsDoNotDependOnWhenTheyWereMade(t *testing.T) {
	t.Parallel()
	log, w := filled(t, 5, 1000)
	dir := newDir(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		s := opened(t, dir, log)
		ctx, cancel := context.WithCancel(t.Context())
		for _, p := range All() {
			f, err := s.live(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			upTo := head(t, log) - eventlog.Position(random.IntN(200))
			if err := advance(ctx, log, []*file{f}, upTo, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := w.Fill(t.Context(), log, 300); err != nil {
			t.Fatal(err)
		}
	}
	s := opened(t, dir, log)
	caughtUp(t, s)
	stepwise := allRows(t, s)
	fresh := opened(t, newDir(t), log)
	caughtUp(t, fresh)
	if d := gocmp.Diff(allRows(t, fresh), stepwise); d != "" {
		t.Errorf("rows made step by step are not those made at once:\n%s", d)
	}
	for _, p := range All() {
		done, err := s.Rebuild(t.Context(), p, nil)
		if err != nil || done.Comparison == nil || !done.Comparison.Same() || done.Comparison.Rows == 0 {
			t.Errorf("rebuilt %+v, %+v, %v", done, done.Comparison, err)
		}
	}
	if d := gocmp.Diff(stepwise, allRows(t, s)); d != "" {
		t.Errorf("rebuilt rows are others:\n%s", d)
	}
}

// Several processes may bring one directory up to date at the same time: nothing is
// counted twice.
func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	log, w := filled(t, 8, 500)
	dir := newDir(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	var running sync.WaitGroup
	defer func() { cancel(enough); running.Wait() }()
	for range 3 {
		s := opened(t, dir, log)
		running.Go(func() {
			if err := s.Run(ctx); !errors.Is(err, enough) {
				t.Error(err)
			}
		})
	}
	reader := opened(t, dir, log)
	for range 20 {
		if err := w.Fill(t.Context(), log, 200); err != nil {
			t.Fatal(err)
		}
		// A caller sees what it wrote, whoever is to bring it there.
		p := head(t, log)
		list, err := reader.Timeline(t.Context(), events.DefaultTenant, "", p-1000, 2000, AtLeast(p))
		if err != nil || len(list) == 0 || list[len(list)-1].Position < p-100 {
			t.Fatalf("the timeline ends before %d (%v)", p, err)
		}
	}
	caughtUp(t, reader)
	cancel(enough)
	running.Wait()
	fresh := opened(t, newDir(t), log)
	caughtUp(t, fresh)
	if d := gocmp.Diff(allRows(t, fresh), allRows(t, reader)); d != "" {
		t.Errorf("the rows are others:\n%s", d)
	}
}

func TestAtLeastWhatTheLogDoesNotHave(t *testing.T) {
	t.Parallel()
	log, _ := filled(t, 1, 100)
	s := opened(t, newDir(t), log)
	if _, err := s.InFlight(t.Context(), events.DefaultTenant, AtLeast(head(t, log)+1)); !errors.Is(err, ErrBehind) {
		t.Errorf("got %v, want ErrBehind", err)
	}
}

// An event that is not known stops the projections, with its name; what was there before
// is still read (D3, D6).
func TestPoison(t *testing.T) {
	t.Parallel()
	log, _ := filled(t, 2, 300)
	s := opened(t, newDir(t), log)
	caughtUp(t, s)
	before := allRows(t, s)
	var victim eventlog.Recorded
	for r, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ours := events.WithdrawalOfStream(r.Stream); ours && r.Revision == 0 {
			victim = r
		}
	}
	at, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: victim.Stream, At: 1, Events: []eventlog.Event{
		{ID: uuid.New(), Type: "WithdrawalForgotten", Data: []byte("{}"), Metadata: []byte("{}")},
	}})
	if err != nil {
		t.Skipf("the workload's last withdrawal has moved on: %v", err)
	}
	var poison *Poison
	if err := s.CatchUp(t.Context()); !errors.As(err, &poison) || poison.Position != at || poison.Stream != victim.Stream || poison.Revision != 1 {
		t.Fatalf("got %v, want poison at position %d", err, at)
	}
	if d := gocmp.Diff(before, allRows(t, s)); d != "" {
		t.Errorf("rows changed:\n%s", d)
	}
	p := withdrawals()
	if _, err := s.Rebuild(t.Context(), p, nil); !errors.As(err, &poison) {
		t.Errorf("a rebuild says %v", err)
	}
	if live, _, _ := s.dir.live(p); live.generation != 1 {
		t.Errorf("generation %d is live, whose rebuild failed", live.generation)
	}
	if _, err := s.Withdrawals(t.Context(), events.DefaultTenant, Filter{}); err != nil {
		t.Errorf("the old file does not serve: %v", err)
	}
	if _, err := s.Withdrawals(t.Context(), events.DefaultTenant, Filter{}, AtLeast(at)); !errors.As(err, &poison) {
		t.Errorf("a reading that wants the event says %v", err)
	}
}

// A file of another log, or of a later state of this one, is not gone on with; a rebuild
// heals it.
func TestOtherLog(t *testing.T) {
	t.Parallel()
	long, _ := filled(t, 4, 1000)
	short, _ := filled(t, 4, 400)  // a backup of the same log
	other, _ := filled(t, 6, 1500) // another one
	for name, log := range map[string]eventlog.Log{"backup": short, "other": other, "empty": memory.New()} {
		dir := newDir(t)
		caughtUp(t, opened(t, dir, long))
		s := opened(t, dir, log)
		if err := s.CatchUp(t.Context()); !errors.Is(err, ErrOtherLog) {
			t.Fatalf("%s: got %v, want ErrOtherLog", name, err)
		}
		for _, p := range All() {
			done, err := s.Rebuild(t.Context(), p, nil)
			if err != nil || !errors.Is(done.Uncompared, ErrOtherLog) {
				t.Fatalf("%s: %+v, %v", name, done, err)
			}
		}
		fresh := opened(t, newDir(t), log)
		caughtUp(t, fresh)
		if d := gocmp.Diff(allRows(t, fresh), allRows(t, s)); d != "" {
			t.Errorf("%s: rows that were rebuilt are others:\n%s", name, d)
		}
	}
}

// A row that somebody changed is found, and gone after a rebuild, which says so.
func TestTamperedRows(t *testing.T) {
	t.Parallel()
	log, _ := filled(t, 9, 800)
	s := opened(t, newDir(t), log)
	caughtUp(t, s)
	for name, change := range map[string]string{
		"outcomes": "UPDATE outcomes SET reference = 'tx-stolen' WHERE key = (SELECT min(key) FROM outcomes WHERE result = 'sent')",
		"claims":   "DELETE FROM claims WHERE withdrawal = (SELECT min(withdrawal) FROM claims)",
		"totals":   "UPDATE totals SET sent_amount = '0'",
		"inflight": "INSERT INTO inflight SELECT 'w' || withdrawal, tenant, disputed, since, account, amount, currency, key, claimed_at, attempt, started, deadline, reported, ended, last_error, events FROM inflight LIMIT 1",
	} {
		p, _ := Find(name)
		f, err := s.live(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		err = run(f.writer.Prep(change))
		f.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Verify(t.Context(), p, nil)
		if err != nil || c.Different == 0 || len(c.First) == 0 || c.First[0].Table != name {
			t.Errorf("%s: verify says %+v, %v", name, c, err)
		}
		done, err := s.Rebuild(t.Context(), p, nil)
		if err != nil || done.Comparison == nil || done.Comparison.Different != cmp.Or(c, &Comparison{}).Different {
			t.Errorf("%s: the rebuild says %+v, %v", name, done, err)
		}
		if c, err = s.Verify(t.Context(), p, nil); err != nil || !c.Same() {
			t.Errorf("%s: after the rebuild verify says %+v, %v", name, c, err)
		}
		if dropped, err := s.DropOld(p, false); err != nil || len(dropped) != 1 {
			t.Errorf("%s: dropped %v, %v", name, dropped, err)
		}
	}
	left, err := os.ReadDir(string(s.dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.IsDir() {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

// Readers that read while projections are rebuilt never see an older answer than before.
func TestReadersDuringARebuild(t *testing.T) {
	t.Parallel()
	log, w := filled(t, 10, 1500)
	dir := newDir(t)
	s := opened(t, dir, log)
	caughtUp(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	var running sync.WaitGroup
	defer func() { cancel(enough); running.Wait() }()
	runner := opened(t, dir, log)
	running.Go(func() {
		if err := runner.Run(ctx); !errors.Is(err, enough) {
			t.Error(err)
		}
	})
	for range 2 {
		reader := opened(t, dir, log)
		running.Go(func() {
			for last := eventlog.Start; ctx.Err() == nil; {
				list, err := reader.Timeline(t.Context(), events.DefaultTenant, "", last, 5000)
				if err != nil {
					t.Error(err)
					return
				}
				// The next reading has to have at least what this one had.
				if len(list) > 0 {
					last = list[len(list)-1].Position
				}
				again, err := reader.Timeline(t.Context(), events.DefaultTenant, "", last-1, 1)
				if err != nil || last > 0 && (len(again) == 0 || again[0].Position != last) {
					t.Errorf("what was at position %d is gone (%v)", last, err)
					return
				}
			}
		})
	}
	running.Go(func() {
		for i := 0; i < 100 && ctx.Err() == nil; i++ {
			if err := w.Fill(t.Context(), log, 50); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		if done, err := s.Rebuild(t.Context(), timeline(), nil); err != nil || done.Comparison == nil || !done.Comparison.Same() {
			t.Errorf("%+v, %v", done, err)
		}
	}
}
