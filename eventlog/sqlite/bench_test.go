package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
)

// callers are the numbers of concurrent callers that the benchmarks run with.
func callers() []int { return []int{1, 16, 64, 256} }

// BenchmarkAppend measures single appends of one event to new streams, and reports how
// many of them there are per durable write of a bare loop on the same disk.
func BenchmarkAppend(b *testing.B) {
	for _, n := range callers() {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			log := openBench(b)
			bare := syncsPerSecond(b)
			spread(b, n, func(caller, i int) error {
				_, err := log.Append(b.Context(), eventlog.StreamAppend{
					Stream: fmt.Sprintf("withdrawal-%d-%d", caller, i),
					Events: []eventlog.Event{benchEvent("WithdrawalRequested", 350)},
				})
				return err
			})
			report(b, "appends", (bare+syncsPerSecond(b))/2)
		})
	}
}

// BenchmarkSubmission measures the appends of a submission: the key's reservation and
// the claim with the attempt in one call, then the outcome. The withdrawals have been
// requested before.
func BenchmarkSubmission(b *testing.B) {
	for _, n := range callers() {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			log := openBench(b)
			requestAll(b, log, n)
			bare := syncsPerSecond(b)
			spread(b, n, func(caller, i int) error { return submit(b.Context(), log, caller, i) })
			report(b, "submissions", (bare+syncsPerSecond(b))/2)
		})
	}
}

// BenchmarkReadStream measures reading a stream of one event, of three, and of none.
func BenchmarkReadStream(b *testing.B) {
	log := openBench(b)
	for _, n := range []int{0, 1, 3} {
		name := fmt.Sprintf("withdrawal-%d", n)
		for i := range n {
			if _, err := log.Append(b.Context(), eventlog.StreamAppend{Stream: name, At: uint64(i),
				Events: []eventlog.Event{benchEvent("KeyClaimed", 350)}}); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range log.ReadStream(b.Context(), name, 0) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func openBench(b *testing.B) *sqlite.Log {
	log, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { log.Close() })
	return log
}

func benchEvent(kind string, size int) eventlog.Event {
	metadata := 150
	return eventlog.Event{ID: uuid.New(), Type: kind, Data: bytes.Repeat([]byte("d"), size-metadata), Metadata: bytes.Repeat([]byte("m"), metadata)}
}

// requestAll writes the first event of every withdrawal that the benchmark will submit.
func requestAll(b *testing.B, log eventlog.Log, callers int) {
	spread(b, callers, func(caller, i int) error {
		_, err := log.Append(b.Context(), eventlog.StreamAppend{
			Stream: fmt.Sprintf("withdrawal-%06d-%022d", caller, i),
			Events: []eventlog.Event{benchEvent("WithdrawalRequested", 350)},
		})
		return err
	})
}

func submit(ctx context.Context, log eventlog.Log, caller, i int) error {
	withdrawal := fmt.Sprintf("withdrawal-%06d-%022d", caller, i)
	key := fmt.Sprintf("requestkey-%052d", caller*1_000_000+i)
	_, err := log.Append(ctx,
		eventlog.StreamAppend{Stream: key, Events: []eventlog.Event{benchEvent("KeyReserved", 350)}},
		eventlog.StreamAppend{Stream: withdrawal, At: 1, Events: []eventlog.Event{
			benchEvent("KeyClaimed", 350), benchEvent("SendAttempted", 350)}},
	)
	if err != nil {
		return err
	}
	_, err = log.Append(ctx, eventlog.StreamAppend{Stream: withdrawal, At: 3,
		Events: []eventlog.Event{benchEvent("OutcomeResolved", 350)}})
	return err
}

// spread runs b.N operations, shared out between callers.
func spread(b *testing.B, callers int, operation func(caller, i int) error) {
	b.ResetTimer()
	b.StartTimer()
	before := processorTime()
	var group sync.WaitGroup
	var failure atomic.Pointer[error]
	for caller := range callers {
		group.Go(func() {
			for i := caller; i < b.N; i += callers {
				if err := operation(caller, i); err != nil {
					failure.Store(&err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	if err := failure.Load(); err != nil {
		b.Fatal(*err)
	}
}

// processorTime is what this process has used so far, which other load on the machine
// disturbs less than the time that passes.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// report adds operations per second, and per sync of the bare loop, which is measured
// before and after because other load makes disks uneven.
func report(b *testing.B, unit string, bare float64) {
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, unit+"/s")
	b.ReportMetric(bare, "fdatasyncs/s")
	b.ReportMetric(rate/bare, unit+"/fdatasync")
}

// syncsPerSecond measures a bare loop that appends 300 bytes and calls fdatasync.
func syncsPerSecond(b *testing.B) float64 {
	file, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	record := make([]byte, 300)
	start, n := time.Now(), 0
	for time.Since(start) < 300*time.Millisecond {
		if _, err := file.Write(record); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}
