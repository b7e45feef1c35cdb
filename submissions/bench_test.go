package submissions_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// callers are the numbers of concurrent callers that the benchmarks are run with.
var callers = []int{1, 16, 64, 256}

// BenchmarkSubmit measures durable submissions: the claim and the outcome are each on
// disk before it goes on. The rail answers at once. "ratio" is submissions per second
// beside the bare loop of the same run, "heap-B" what is in use afterwards.
func BenchmarkSubmit(b *testing.B) {
	for _, n := range callers {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			l, _ := benchLedger(b)
			ctx := b.Context()
			before := bareLoop(b)
			b.ReportAllocs()
			b.ResetTimer()
			var r0, r1 syscall.Rusage
			var user, sys time.Duration
			for done := 0; done < b.N; done += window {
				b.StopTimer()
				upTo := min(window, b.N-done)
				concurrently(b, 64, upTo, func(i int) error {
					_, err := l.Request(ctx, benchOrder(done+i))
					return err
				})
				syscall.Getrusage(0, &r0)
				b.StartTimer()
				concurrently(b, n, upTo, func(i int) error {
					_, err := l.Submit(ctx, benchKey(done+i), benchID(done+i), benchSend, nil)
					return err
				})
				syscall.Getrusage(0, &r1)
				user += time.Duration(r1.Utime.Nano() - r0.Utime.Nano())
				sys += time.Duration(r1.Stime.Nano() - r0.Stime.Nano())
			}
			b.StopTimer()
			b.ReportMetric(float64(user.Microseconds())/float64(b.N), "user-us")
			b.ReportMetric(float64(sys.Microseconds())/float64(b.N), "sys-us")
			report(b, before)
		})
	}
}

// window is how many withdrawals are requested before they are submitted: as many as a
// ledger remembers, so that little of the time goes into the beginning and the end of a
// window, when not all callers are busy.
const window = 4000

// BenchmarkReplay measures repeats of submissions that have their outcome: of a few, as
// when clients retry, and of more than are remembered.
func BenchmarkReplay(b *testing.B) {
	for _, resolved := range []int{1000, 20000} {
		l, log := benchLedger(b)
		for i := range resolved {
			if _, err := l.Request(b.Context(), benchOrder(i)); err != nil {
				b.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for c := range 64 {
			wg.Go(func() {
				for i := c; i < resolved; i += 64 {
					if _, err := l.Submit(b.Context(), benchKey(i), benchID(i), benchSend, nil); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("resolved=%d/callers=%d", resolved, n), func(b *testing.B) {
				fresh, err := submissions.New(log, nil)
				if err != nil {
					b.Fatal(err)
				}
				before := bareLoop(b)
				b.ReportAllocs()
				b.ResetTimer()
				concurrently(b, n, b.N, func(i int) error {
					o, err := fresh.Submit(b.Context(), benchKey(i%resolved), benchID(i%resolved), benchSend, nil)
					if err == nil && !o.Replayed {
						err = fmt.Errorf("it was not a replay")
					}
					return err
				})
				b.StopTimer()
				report(b, before)
			})
		}
	}
}

func benchLedger(b *testing.B) (*submissions.Ledger, eventlog.Log) {
	b.Helper()
	log, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "holdfast.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := log.Close(); err != nil {
			b.Error(err)
		}
	})
	l, err := submissions.New(log, nil)
	if err != nil {
		b.Fatal(err)
	}
	return l, log
}

func benchOrder(i int) submissions.Request {
	return submissions.Request{
		Account: "alice", Reference: "order-" + strconv.Itoa(i), Amount: "10.25", Currency: "EUR", Destination: "DE89370400440532013000",
	}
}

func benchID(i int) events.WithdrawalID {
	return events.MintWithdrawalID(events.DefaultTenant, "alice", "order-"+strconv.Itoa(i))
}

func benchKey(i int) events.RequestKey { return events.RequestKey("req-" + strconv.Itoa(i)) }

func benchSend(_ context.Context, p rail.Payment) (rail.Receipt, error) {
	return rail.Receipt{
		Reference: "tx-" + string(p.Withdrawal),
		Response:  events.Response{MediaType: "application/json", Body: []byte(`{"status":"sent","reference":"tx"}`)},
	}, nil
}

// concurrently calls do for 0 to upTo-1, from n goroutines.
func concurrently(b *testing.B, n, upTo int, do func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < upTo; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// bareLoop returns how often per second a single loop appends 300 bytes to a file and
// calls fdatasync.
func bareLoop(b *testing.B) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 300)
	n := 0
	began := time.Now()
	for ; time.Since(began) < 500*time.Millisecond; n++ {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

// report prints the rate beside the bare loop's, which is the mean of before and after.
func report(b *testing.B, before float64) {
	b.Helper()
	bare := (before + bareLoop(b)) / 2
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "per-s")
	b.ReportMetric(bare, "bare-per-s")
	b.ReportMetric(rate/bare, "ratio")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc), "heap-B")
	b.ReportMetric(0, "ns/op")
}
