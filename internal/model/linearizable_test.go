package model_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
	"holdfast/eventlog/kurrent"
	"holdfast/eventlog/logtest"
	"holdfast/eventlog/memory"
	"holdfast/eventlog/sqlite"
	"holdfast/internal/kurrentnode"
	"holdfast/internal/model"
	"holdfast/submissions"
)

var (
	histories = flag.Int("histories", 40, "how many concurrent histories are made on each kind of log, and a tenth of that on slow ones")
	firstSeed = flag.Uint64("seed", 0, "the first seed of the concurrent histories; a random one by default")
)

// checked is a command as it is checked: with the withdrawals for which another call may at
// that time have reserved the same key.
type checked struct {
	model.Command
	reserved []string
}

// kinds are the kinds of log that histories are made on.
func kinds() []kind {
	inMemory := func(*testing.T) eventlog.Log { return memory.New() }
	onDisk := func(t *testing.T) eventlog.Log {
		log, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "log"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	onServer := func(lose func(int) error) func(t *testing.T) eventlog.Log {
		return func(t *testing.T) eventlog.Log {
			node := kurrentnode.Keep(t)
			node.Lose(lose)
			log, err := kurrent.Open(context.Background(), node.URL(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return log
		}
	}
	one := func(log eventlog.Log, _ *rand.Rand) eventlog.Log { return logtest.OneByOne(log) }
	lose := func(log eventlog.Log, rng *rand.Rand) eventlog.Log {
		return &lossy{Log: log, rng: rng, lost: map[uuid.UUID]bool{}}
	}
	loseOnce := func(log eventlog.Log, rng *rand.Rand) eventlog.Log {
		return &lossy{Log: log, rng: rng, lost: map[uuid.UUID]bool{}, once: true}
	}
	both := func(log eventlog.Log, rng *rand.Rand) eventlog.Log { return one(lose(log, rng), rng) }
	const soon, onDiskSoon = 2 * time.Millisecond, 30 * time.Millisecond
	return []kind{
		{name: "memory", open: inMemory},
		{name: "memory, one by one", open: inMemory, wrap: one, apart: true},
		{name: "memory, lossy", open: inMemory, wrap: lose, patience: soon},
		{name: "memory, lossy, one by one", open: inMemory, wrap: both, apart: true, patience: soon},
		{name: "memory, answers lost once", open: inMemory, wrap: loseOnce},
		{name: "SQLite", open: onDisk, slow: true},
		{name: "SQLite, lossy", open: onDisk, wrap: lose, patience: onDiskSoon, slow: true},
		{name: "SQLite, lossy, one by one", open: onDisk, wrap: both, apart: true, patience: onDiskSoon, slow: true},
		{name: "SQLite, answers lost once", open: onDisk, wrap: loseOnce, slow: true},
		{name: "KurrentDB", open: onServer(nil), apart: true},
		{name: "KurrentDB, losing answers", open: onServer(func(n int) error {
			if n%3 == 0 {
				return status.Error(codes.Aborted, "the answer was lost")
			}
			return nil
		}), apart: true, slow: true},
		{name: "KurrentDB cluster, failing over", open: onCluster, apart: true, slow: true},
	}
}

// onCluster opens a log on a cluster whose leader is lost at every seventh append, with that
// append on it alone.
func onCluster(t *testing.T) eventlog.Log {
	c := kurrentnode.Gather(t, 3)
	var appends atomic.Int64
	var lost atomic.Pointer[kurrentnode.Node]
	for _, n := range c.Nodes {
		n.Before(func(context.Context, int) error {
			if leader := c.Leader(); leader != nil && appends.Add(1)%7 == 0 && lost.CompareAndSwap(nil, leader) {
				c.Cut(leader)
			}
			return nil
		})
		n.Lose(func(int) error { // once an append has waited for the others
			if old := lost.Load(); old != nil {
				c.Elect(t)
				c.Mend(old)
				lost.CompareAndSwap(old, nil)
			}
			return nil
		})
	}
	t.Cleanup(func() {
		if c.Elections() == 0 {
			t.Error("no leader was lost: this shows nothing")
		}
	})
	log, err := kurrent.Open(context.Background(), c.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// TestLinearizable makes random concurrent histories on every kind of log, and checks
// that each is what the model would have answered, one command after another.
func TestLinearizable(t *testing.T) {
	seed := *firstSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 32)
	}
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			n := *histories
			if k.slow {
				n = (n + 9) / 10
			}
			operations, met := 0, map[string]int{}
			for i := range uint64(n) {
				history := concurrent(t, k, seed+i, func(l *submissions.Ledger) ledger { return l })
				operations += len(history)
				for _, o := range history {
					met[fmt.Sprint(o.Input.(checked).Verb, " ", o.Output.(model.Answer).Code)]++
				}
				if verdict, info := check(k, history); verdict != porcupine.Ok {
					t.Fatalf("seed %d: no order of these calls explains their answers (%s); see %s", seed+i, verdict, keep(t, k, info))
				}
			}
			t.Logf("seeds from %d: %d histories, %d operations: %v", seed, n, operations, met)
		})
	}
}

// check looks for an order of the calls in which the model answers as was answered.
func check(k kind, history []porcupine.Operation) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	if k.apart {
		history = withReservations(history)
	}
	return porcupine.CheckOperationsVerbose(sequential(k), history, time.Minute)
}

// keep writes a picture of a history where it stays, and returns the path.
func keep(t *testing.T, k kind, info porcupine.LinearizationInfo) string {
	dir := ""
	if artifacts := flag.Lookup("test.artifacts"); artifacts != nil && artifacts.Value.String() == "true" {
		dir = t.ArtifactDir()
	} else if kept, err := os.MkdirTemp("", "holdfast-history-"); err == nil {
		dir = kept
	}
	path := filepath.Join(dir, "history.html")
	if err := porcupine.VisualizePath(sequential(k), info, path); err != nil {
		t.Error(err)
	}
	return path
}

// sequential is the model as the checker has it.
func sequential(k kind) porcupine.Model {
	return porcupine.Model{
		Partition: apartFromEachOther,
		Init:      func() any { return start() },
		Step: func(state, input, output any) (bool, any) {
			before, c, given := state.(*model.Ledger), input.(checked), output.(model.Answer)
			after := before.Clone()
			want := after.Do(c.Command)
			if k.apart && given.Code == "not-found" && given.Withdrawal == "" {
				want.Withdrawal = "" // a reservation that lost hides which claim the key gave up
			}
			switch {
			case given == want || given.Code == anything:
				return true, after
			case given.Code == "key-reused" && slices.Contains(c.reserved, given.Withdrawal):
				// Another call under the key has reserved it, and not claimed with it yet.
				return reservable(before, c.Command, want, given), before
			}
			return false, before
		},
		Equal: func(a, b any) bool { return a.(*model.Ledger).Equal(b.(*model.Ledger)) },
		DescribeOperation: func(input, output any) string {
			c := input.(checked)
			return fmt.Sprintf("%s %s %s %s#%d\n%+v", c.Verb, c.Key, c.Withdrawal, c.Result, c.Attempt, output)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// reservable reports whether a key may be told that it stands for a withdrawal that it
// does not hold yet: nobody holds that one, and but for the reservation the call would
// have gone through, or been refused for the same reason.
func reservable(l *model.Ledger, c model.Command, want, given model.Answer) bool {
	through := want.Code == "" && !want.Replayed || want.Code == "key-reused"
	other := l.Do(model.Command{Verb: model.ClaimedBy, Tenant: c.Tenant, Withdrawal: given.Withdrawal})
	return through && other.Holder == "" && given == l.Reused(c, given.Withdrawal)
}

// withReservations notes, for each call that may take a claim, for which other
// withdrawals its key may be reserved meanwhile.
func withReservations(history []porcupine.Operation) []porcupine.Operation {
	claims := func(c checked) bool { return c.Verb == model.Submit || c.Verb == model.Resolve }
	history = slices.Clone(history)
	for i := range history {
		o := &history[i]
		c := o.Input.(checked)
		for _, other := range history {
			d := other.Input.(checked)
			if claims(c) && claims(d) && c.Key == d.Key && c.Withdrawal != d.Withdrawal && o.Call < other.Return && other.Call < o.Return {
				c.reserved = append(c.reserved, d.Withdrawal)
			}
		}
		o.Input = c
	}
	return history
}

// apartFromEachOther partitions a history into calls that have no key and no withdrawal
// in common, not even by way of other calls.
func apartFromEachOther(history []porcupine.Operation) [][]porcupine.Operation {
	parent := map[string]string{}
	var root func(string) string
	root = func(s string) string {
		if p, ok := parent[s]; ok && p != s {
			parent[s] = root(p)
			return parent[s]
		}
		return s
	}
	name := func(o porcupine.Operation) (string, string) {
		c := o.Input.(checked)
		key, withdrawal := "key "+c.Key, "withdrawal "+c.Withdrawal
		switch {
		case c.Key == "":
			key = withdrawal
		case c.Withdrawal == "":
			withdrawal = key
		}
		return key, withdrawal
	}
	for _, o := range history {
		key, withdrawal := name(o)
		parent[root(key)] = root(withdrawal)
	}
	parts := map[string][]porcupine.Operation{}
	var order []string
	for _, o := range history {
		key, _ := name(o)
		at := root(key)
		if parts[at] == nil {
			order = append(order, at)
		}
		parts[at] = append(parts[at], o)
	}
	var all [][]porcupine.Operation
	for _, at := range order {
		all = append(all, parts[at])
	}
	return all
}
