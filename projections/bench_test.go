package projections

import (
	"flag"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
	"holdfast/events"
	"holdfast/internal/workload"
	"holdfast/submissions"
)

var benchEvents = flag.Int("events", 50_000, "how many events the log of the benchmarks has")

// BenchmarkRebuild measures how fast rows are made again from a log in a file, beside a
// bare reading of the same file in the same run: "ratio" is events per second of the one
// to those of the other, "peak-MB" the most memory that was in use.
func BenchmarkRebuild(b *testing.B) {
	log, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "holdfast.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	if err := workload.New(1).Fill(b.Context(), log, *benchEvents); err != nil {
		b.Fatal(err)
	}
	sets := map[string][]*Projection{"all": All()}
	for _, p := range All() {
		sets[p.Name] = []*Projection{p}
	}
	for name, projections := range sets {
		b.Run(name, func(b *testing.B) {
			var bare, rebuilt time.Duration
			peak := watchHeap()
			for b.Loop() {
				bare += scan(b, log)
				s := opened(b, newDir(b), log)
				var files []*file
				for _, p := range projections {
					at := place{name: p.Name, version: p.Version, generation: 1}
					if err := s.dir.add(p, at); err != nil {
						b.Fatal(err)
					}
					f, err := s.file(p, at)
					if err != nil {
						b.Fatal(err)
					}
					files = append(files, f)
				}
				began := time.Now()
				if err := advance(b.Context(), log, files, 0, false, nil); err != nil {
					b.Fatal(err)
				}
				rebuilt += time.Since(began)
			}
			b.ReportMetric(bare.Seconds()/rebuilt.Seconds(), "ratio")
			b.ReportMetric(float64(*benchEvents*b.N)/bare.Seconds(), "bare-per-s")
			b.ReportMetric(float64(*benchEvents*b.N)/rebuilt.Seconds(), "per-s")
			b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkHistory measures what the history of one withdrawal costs, in a log with as many
// events as -events says: withdrawals from all over the log, one after another.
func BenchmarkHistory(b *testing.B) {
	log, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "holdfast.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	if err := workload.New(1).Fill(b.Context(), log, *benchEvents); err != nil {
		b.Fatal(err)
	}
	var ids []events.WithdrawalID
	step := max(1, *benchEvents/5000)
	for e, err := range log.ReadAll(b.Context(), eventlog.Start) {
		if err != nil {
			b.Fatal(err)
		}
		if id, ours := events.WithdrawalOfStream(e.Stream); ours && e.Revision == 0 && int(e.Position)%step == 0 {
			ids = append(ids, id)
		}
	}
	core, err := submissions.New(log, nil)
	if err != nil {
		b.Fatal(err)
	}
	ledgers := []*submissions.Ledger{core, core.For("other")}
	n := 0
	for b.Loop() {
		id := ids[n%len(ids)]
		n++
		for _, l := range ledgers { // the workload has two tenants
			if history, err := l.History(b.Context(), id); err == nil && len(history) > 0 {
				break
			}
		}
	}
}

// scan reads every event in the order of the log.
func scan(b *testing.B, log eventlog.Log) time.Duration {
	began := time.Now()
	for _, err := range log.ReadAll(b.Context(), eventlog.Start) {
		if err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// watchHeap looks at the memory in use until the function that it returns is called, which
// returns the most that it saw.
func watchHeap() func() uint64 {
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(5 * time.Millisecond)
		defer look.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapInuse))
			select {
			case <-done:
				return
			case <-look.C:
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		return most.Load()
	}
}
