package transfer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/eventlog"
	"holdfast/eventlog/kurrent"
	"holdfast/eventlog/sqlite"
	"holdfast/events"
	"holdfast/internal/kurrentnode"
	"holdfast/rail"
	"holdfast/submissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// atOnce are options of a copy beside which nothing is at work on the logs.
func atOnce(o Options) *Options {
	o.Actor = "ann"
	o.Pause = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
	return &o
}

func at(log eventlog.Log, name string) Place { return Place{Log: log, Name: name} }

func ledger(t testing.TB, log eventlog.Log) *submissions.Ledger {
	t.Helper()
	l, err := submissions.New(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// by is who acts in the tests.
var by = submissions.By{Actor: "ann"}

func sent(_ context.Context, p rail.Payment) (rail.Receipt, error) {
	return rail.Receipt{Reference: "tx-" + p.Token[:8], Response: events.Response{MediaType: "text/plain", Body: []byte{0xff, 0, 'x'}}}, nil
}

func lost(context.Context, rail.Payment) (rail.Receipt, error) {
	return rail.Receipt{}, errors.New("lost")
}

// fill lets callers do everything that can be done to withdrawals, all at the same time,
// until a log has about so many events.
func fill(t testing.TB, log eventlog.Log, tenant events.Tenant, n int) {
	t.Helper()
	const callers, each = 16, 22 // events of one life
	l := ledger(t, log).For(tenant)
	var running sync.WaitGroup
	for c := range callers {
		running.Go(func() {
			for i := range max(1, n/callers/each) {
				if err := live(t.Context(), l, fmt.Sprintf("%d-%d", c, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// live is four withdrawals' lives: one is sent, one is lost and released and sent under
// another key, one is refused and resolved, and one is requested only.
func live(ctx context.Context, l *submissions.Ledger, name string) error {
	var ids []events.WithdrawalID
	for i := range 4 {
		s, err := l.Request(ctx, submissions.Request{By: by, Account: "alice", Reference: fmt.Sprintf("%s-%d", name, i), Amount: "10.25", Currency: "EUR", Destination: "DE89"})
		if err != nil {
			return err
		}
		ids = append(ids, s.ID)
	}
	key := func(s string) events.RequestKey { return events.RequestKey(name + "-" + s) }
	_, sending := l.Submit(ctx, key("a"), ids[0], sent, nil)
	_, losing := l.Submit(ctx, key("b"), ids[1], lost, nil)
	_, releasing := l.Release(ctx, key("b"), submissions.Release{By: by, Reason: "r", Evidence: "e", Seen: 4})
	_, again := l.Submit(ctx, key("c"), ids[1], sent, nil)
	_, refusing := l.Submit(ctx, key("d"), ids[2], func(context.Context, rail.Payment) (rail.Receipt, error) {
		return rail.Receipt{}, &rail.Refusal{Reason: "closed"}
	}, nil)
	_, resolving := l.Resolve(ctx, key("d"), submissions.Resolution{By: by, Result: events.ResultFailed, Reason: "r", Evidence: "e", Seen: 4})
	if losing == nil || refusing == nil {
		return errors.New("the rail's no was taken for a yes")
	}
	return errors.Join(sending, releasing, again, resolving)
}

func onSQLite(t testing.TB) *sqlite.Log {
	t.Helper()
	l, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func onCluster(t testing.TB) *kurrent.Log {
	t.Helper()
	node := kurrentnode.Keep(t)
	l, err := kurrent.Open(t.Context(), node.URL()+"&prefix=moved-", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// contents are the events of a log that are copied, by stream.
func contents(t testing.TB, log eventlog.Log) map[string][]eventlog.Event {
	t.Helper()
	all := map[string][]eventlog.Event{}
	for r, err := range history(t.Context(), log, eventlog.Start, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if uint64(len(all[r.Stream])) != r.Revision {
			t.Fatalf("%s: revision %d comes after %d events", r.Stream, r.Revision, len(all[r.Stream]))
		}
		all[r.Stream] = append(all[r.Stream], r.Event)
	}
	return all
}

// equal checks that two logs have the same streams with the same events, byte for byte, and
// returns them.
func equal(t testing.TB, a, b eventlog.Log) map[string][]eventlog.Event {
	t.Helper()
	one, other := contents(t, a), contents(t, b)
	for stream, want := range one {
		if !slices.EqualFunc(want, other[stream], func(x, y eventlog.Event) bool {
			return x.ID == y.ID && x.Type == y.Type && string(x.Data) == string(y.Data) && string(x.Metadata) == string(y.Metadata)
		}) {
			t.Fatalf("%s is not the same in both logs", stream)
		}
	}
	if len(one) != len(other) {
		t.Fatalf("one log has %d streams, the other %d", len(one), len(other))
	}
	return one
}
