package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"
	lib "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
)

// A process that is killed at any moment loses nothing that was acknowledged, and leaves
// a log that opens and goes on.
func TestKilledProcess(t *testing.T) {
	path := fresh(t)
	random := rand.New(rand.NewPCG(1, 2))
	var all []acknowledged
	for round := range 8 {
		c := startChild(t, path, fmt.Sprintf("own-%d", round), 1_000_000, "shared")
		c.begin(t)
		for range 1 + random.IntN(300) {
			a, ok := c.next(t)
			if !ok {
				t.Fatalf("the child ended on its own: %s", &c.errors)
			}
			all = append(all, a)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for a, ok := c.next(t); ok; a, ok = c.next(t) {
			all = append(all, a) // printed before it died
		}
		_ = c.cmd.Wait() // it was killed
		log := open(t, path, nil)
		wantAcknowledged(t, log, all)
		if err := log.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}

// Eight processes create the same log at the same moment and write it together; all get
// their turn, and a follower in another process sees everything in order.
func TestManyProcesses(t *testing.T) {
	const processes, appends = 8, 40
	path := fresh(t)
	children := make([]*child, processes)
	for i := range children {
		children[i] = startChild(t, path, fmt.Sprintf("own-%d", i), appends, "shared")
	}
	for _, c := range children {
		c.begin(t)
	}
	log := open(t, path, nil) // a ninth
	results := make([][]acknowledged, processes)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for i, c := range children {
		group.Go(func() {
			for a, ok := c.next(t); ok; a, ok = c.next(t) {
				results[i] = append(results[i], a)
			}
			if err := c.cmd.Wait(); err != nil {
				t.Errorf("child %d: %v: %s", i, err, &c.errors)
				cancel() // what is waited for below will not come
			}
		})
	}
	want := eventlog.Position(1)
	for recorded, err := range log.Follow(ctx, eventlog.Start) {
		if err != nil || recorded.Position != want {
			t.Fatalf("Follow yields position %d, %v, want %d", recorded.Position, err, want)
		}
		if want++; want > processes*appends {
			break
		}
	}
	group.Wait()
	var all []acknowledged
	for i := range results {
		if len(results[i]) != appends {
			t.Errorf("child %d had %d appends acknowledged, want %d", i, len(results[i]), appends)
		}
		all = append(all, results[i]...)
	}
	wantAcknowledged(t, log, all)
}

// A write-ahead log that is cut off or torn, as a crash of the machine leaves it, gives
// back every whole commit before the fault, and a log that works.
func TestTornWriteAheadLog(t *testing.T) {
	path := fresh(t)
	log := open(t, path, nil)
	const appends = 60
	sizes := make([]int64, appends) // of what is in the write-ahead log after each append
	for i := range uint64(appends) {
		_, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: "s", At: i,
			Events: []eventlog.Event{{ID: uuid.New(), Type: "T", Data: make([]byte, 700)}}})
		if err != nil {
			t.Fatal(err)
		}
		sizes[i] = inWriteAheadLog(t, path)
	}
	// Only SQLite may open the file of a log that is in use; see the package's
	// documentation. The copies are taken by a process of their own.
	main, wal := readElsewhere(t, path), readElsewhere(t, path+"-wal")
	if int64(len(wal)) < sizes[appends-1] {
		t.Fatalf("the write-ahead log has %d bytes, want at least %d", len(wal), sizes[appends-1])
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 25 {
		cut := sizes[0] + random.Int64N(sizes[appends-1]-sizes[0])
		for name, torn := range map[string][]byte{
			"cut off": wal[:cut],
			"zeros":   append(append([]byte(nil), wal[:cut]...), make([]byte, len(wal)-int(cut))...),
			"flipped": flipped(wal, cut),
		} {
			copied := filepath.Join(t.TempDir(), "copy.db")
			if err := os.WriteFile(copied, main, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(copied+"-wal", torn, 0o600); err != nil {
				t.Fatal(err)
			}
			same := 0 // bytes before the first that differs
			for same < len(torn) && torn[same] == wal[same] {
				same++
			}
			whole := uint64(0)
			for whole < appends && sizes[whole] <= int64(same) {
				whole++
			}
			reopenTorn(t, copied, fmt.Sprintf("%s at %d", name, cut), whole)
		}
	}
}

// inWriteAheadLog returns how many bytes of the write-ahead log are in use; the file may
// be longer.
func inWriteAheadLog(t *testing.T, path string) int64 {
	t.Helper()
	conn, err := lib.OpenConn(path, lib.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	frames := int64(0)
	err = sqlitex.ExecuteTransient(conn, "PRAGMA wal_checkpoint(NOOP)", &sqlitex.ExecOptions{ResultFunc: func(stmt *lib.Stmt) error {
		frames = stmt.ColumnInt64(1)
		return nil
	}})
	if err != nil || frames <= 0 {
		t.Fatalf("the write-ahead log has %d frames, %v", frames, err)
	}
	const header, frame = 32, 24 + 4096
	return header + frames*frame
}

func flipped(wal []byte, at int64) []byte {
	torn := append([]byte(nil), wal...)
	torn[at] ^= 0x40
	return torn
}

// reopenTorn opens a log that has so many whole commits, of one event each, and goes on.
func reopenTorn(t *testing.T, path, name string, whole uint64) {
	t.Helper()
	log, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatalf("%s: Open: %v", name, err)
	}
	defer log.Close()
	n := uint64(0)
	for _, err := range log.ReadStream(t.Context(), "s", 0) {
		if err != nil {
			t.Fatalf("%s: ReadStream: %v", name, err)
		}
		n++
	}
	if n != whole {
		t.Fatalf("%s: %d events are there, want the %d that were whole", name, n, whole)
	}
	_, err = log.Append(t.Context(), eventlog.StreamAppend{Stream: "s", At: n, Events: []eventlog.Event{{ID: uuid.New(), Type: "T"}}})
	if err != nil {
		t.Fatalf("%s: Append: %v", name, err)
	}
}
