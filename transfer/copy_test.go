package transfer

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/projections"
	"holdfast/submissions"
)

// TestThereAndBack copies a log from a file to a cluster, and from there to another file:
// the same events, by stream, revision, id, type and bytes. HOLDFAST_TEST_COPY says how
// many events; scripts/copy runs it with 100,000.
func TestThereAndBack(t *testing.T) {
	n := 2000
	if s := os.Getenv("HOLDFAST_TEST_COPY"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	file, cluster, other := onSQLite(t), onCluster(t), onSQLite(t)
	fill(t, file, events.DefaultTenant, n)
	fill(t, file, "another", n/10)
	for _, leg := range []struct {
		name     string
		from, to eventlog.Log
	}{{"to the cluster", file, cluster}, {"and back", cluster, other}} {
		began := time.Now()
		stages := map[Stage]time.Duration{}
		at0, last := began, Stage("")
		report, err := Copy(t.Context(), at(leg.from, "from"), at(leg.to, "to"), atOnce(Options{CutOver: true, Progress: func(s Stage, _ uint64) {
			if s != last {
				stages[last] += time.Since(at0)
				at0, last = time.Now(), s
			}
		}}))
		if err != nil {
			t.Fatalf("%s: %v", leg.name, err)
		}
		if !report.CutOver || report.MovedOn || report.Appended != report.Events {
			t.Errorf("%s: %+v", leg.name, report)
		}
		stages[last] += time.Since(at0)
		t.Logf("%s: %d events in %d streams, %d withdrawals and %d keys asked about, in %v: %v", leg.name, report.Events, report.Streams, report.Withdrawals, report.Keys, time.Since(began), stages)
	}
	want := equal(t, file, other)
	if len(want) < 3 {
		t.Fatalf("only %d streams", len(want))
	}
	sameProjections(t, file, cluster, other)
}

// sameProjections compares what the read side makes of copies of a log. The timeline is
// kept by positions, which belong to the engine.
func sameProjections(t *testing.T, original eventlog.Log, copies ...eventlog.Log) {
	t.Helper()
	made := func(log eventlog.Log) *projections.Set {
		s, err := projections.Open(filepath.Join(t.TempDir(), "projections"), log, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	want := made(original)
	for _, log := range copies {
		got := made(log)
		for _, p := range projections.All() {
			c, err := want.CompareWith(t.Context(), got, p)
			if err != nil || c.Rows == 0 && p.Name != "inflight" || p.Name != "timeline" && !c.Same() {
				t.Errorf("%s: %+v, %v", p.Name, c, err)
			}
		}
	}
}

// TestOneLedgerAtATime follows a move: at every moment one of the two pays, or none.
func TestOneLedgerAtATime(t *testing.T) {
	file, cluster := onSQLite(t), onCluster(t)
	fill(t, file, events.DefaultTenant, 100)
	pays := func(log eventlog.Log) bool {
		_, err := ledger(t, log).Outcome(t.Context(), "0-0-a")
		if code, _ := submissions.CodeOf(err); err != nil && code != submissions.CodeUnavailable {
			t.Fatal(err)
		}
		return err == nil
	}
	is := func(when string, source, target bool) {
		t.Helper()
		if pays(file) != source || pays(cluster) != target {
			t.Fatalf("%s: the source is a ledger %t, want %t; the target %t, want %t", when, pays(file), source, pays(cluster), target)
		}
	}
	copies := func(from, to eventlog.Log, cutOver bool, during func(Stage)) Report {
		t.Helper()
		r, err := Copy(t.Context(), at(from, "from"), at(to, "to"), atOnce(Options{CutOver: cutOver, Progress: func(s Stage, _ uint64) { during(s) }}))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	copies(file, cluster, false, func(s Stage) {
		if s != CheckingSource {
			is("during a copy", true, false)
		}
	})
	is("after a copy", true, false)
	fill(t, file, "late", 100) // the source goes on
	sealed := false
	r := copies(file, cluster, true, func(s Stage) {
		if sealed = sealed || s == Copying && !pays(file); sealed {
			is("during the cut-over", false, false)
		}
	})
	if !sealed {
		t.Error("the cut-over was not looked at")
	}
	if r.Appended >= r.Events {
		t.Errorf("the second copy wrote everything again: %+v", r)
	}
	is("after the cut-over", false, true)
	if again := copies(file, cluster, true, func(Stage) { t.Error("it did something") }); !again.Already || again.Events != r.Events {
		t.Errorf("again: %+v, and before %+v", again, r)
	}

	fill(t, cluster, "later", 100)
	if back := copies(cluster, file, true, func(Stage) {}); back.Appended < 100 {
		t.Errorf("coming back: %+v", back)
	}
	is("after the way back", true, false)
	equal(t, cluster, file)
}
