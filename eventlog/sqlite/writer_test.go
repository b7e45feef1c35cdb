package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
)

func openWith(t *testing.T, options *Options) *Log {
	t.Helper()
	log, err := Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), options)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func one(stream string, at uint64, size int) eventlog.StreamAppend {
	return eventlog.StreamAppend{Stream: stream, At: at, Events: []eventlog.Event{
		{ID: uuid.New(), Type: "Tested", Data: make([]byte, size)}}}
}

func count(t *testing.T, log *Log, stream string) (n uint64) {
	t.Helper()
	for _, err := range log.ReadStream(context.Background(), stream, 0) {
		if err != nil {
			t.Fatalf("ReadStream(%q): %v", stream, err)
		}
		n++
	}
	return n
}

// When the disk is full, SQLite says so, nothing that was acknowledged is lost, and the
// log goes on once there is room.
func TestDiskFull(t *testing.T) {
	var limit atomic.Int64
	limit.Store(40)
	log := openWith(t, &Options{steps: steps{beforeBegin: func(conn *sqlite.Conn) error {
		return execute(conn, fmt.Sprintf("PRAGMA max_page_count = %d", limit.Load()))
	}}})
	acknowledged := uint64(0)
	var err error
	for err == nil && acknowledged < 1000 {
		if _, err = log.Append(t.Context(), one("s", acknowledged, 3000)); err == nil {
			acknowledged++
		}
	}
	if !errors.Is(err, eventlog.ErrNotExecuted) || sqlite.ErrCode(err) != sqlite.ResultFull || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("Append = %v, want ErrNotExecuted that says that the disk is full", err)
	}
	if acknowledged == 0 || count(t, log, "s") != acknowledged {
		t.Fatalf("%d events are there, %d were acknowledged", count(t, log, "s"), acknowledged)
	}
	limit.Store(100000)
	if _, err := log.Append(t.Context(), one("s", acknowledged, 3000)); err != nil {
		t.Fatalf("Append once there is room: %v", err)
	}
	if _, err := log.Append(t.Context(), one("new", 0, 3000)); err != nil {
		t.Fatalf("Append to another stream: %v", err)
	}
}

// A commit that fails may still turn out to have happened, so the result is not known,
// for every call of the batch, and the same append may be tried again.
func TestCommitFails(t *testing.T) {
	fail := true
	log := openWith(t, &Options{steps: steps{beforeCommit: func(conn *sqlite.Conn) error {
		if !fail {
			return nil
		}
		fail = false
		// A row that breaks a deferred constraint makes COMMIT itself fail.
		return execute(conn, `
			CREATE TEMP TABLE parent (x INTEGER PRIMARY KEY);
			CREATE TEMP TABLE child (x INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
			INSERT INTO child VALUES (1)`)
	}, beforeBegin: func(conn *sqlite.Conn) error { return execute(conn, "PRAGMA foreign_keys = ON") }}})
	a := one("s", 0, 10)
	if _, err := log.Append(t.Context(), a); !errors.Is(err, eventlog.ErrUnknownResult) || sqlite.ErrCode(err) != sqlite.ResultConstraintForeignKey {
		t.Fatalf("Append = %v, want ErrUnknownResult with SQLite's reason", err)
	}
	for range 2 {
		if position, err := log.Append(t.Context(), a); err != nil || position != 1 {
			t.Fatalf("the retry = %d, %v, want position 1", position, err)
		}
	}
	if n := count(t, log, "s"); n != 1 {
		t.Fatalf("the stream has %d events, want 1", n)
	}
}

// held is a log whose writer waits, at the beginning of its first transaction, until it
// is let go.
func held(t *testing.T) (log *Log, taken, release chan struct{}) {
	taken, release = make(chan struct{}), make(chan struct{})
	first := true
	log = openWith(t, &Options{steps: steps{beforeBegin: func(*sqlite.Conn) error {
		if first {
			first = false
			close(taken)
			<-release
		}
		return nil
	}}})
	return log, taken, release
}

type answer struct {
	position eventlog.Position
	err      error
}

// send appends in the background and returns once the call is in the queue or taken.
func send(ctx context.Context, log *Log, queued int, appends ...eventlog.StreamAppend) chan answer {
	done := make(chan answer, 1)
	go func() {
		position, err := log.Append(ctx, appends...)
		done <- answer{position, err}
	}()
	for log.writer.queue.waiting() < queued {
		runtime.Gosched()
	}
	return done
}

// A caller that leaves while its append is queued takes it back; one that leaves when the
// writer has it does not know.
func TestCallerLeaves(t *testing.T) {
	log, taken, release := held(t)
	reason := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	first := send(ctx, log, 0, one("taken", 0, 1))
	<-taken
	second := send(ctx, log, 1, one("queued", 0, 1))
	third := send(t.Context(), log, 2, one("patient", 0, 1))
	cancel(reason)
	if a := <-first; !errors.Is(a.err, eventlog.ErrUnknownResult) || !errors.Is(a.err, reason) {
		t.Errorf("the append that was taken: %v, want ErrUnknownResult", a.err)
	}
	if a := <-second; !errors.Is(a.err, eventlog.ErrNotExecuted) || !errors.Is(a.err, reason) {
		t.Errorf("the append that was queued: %v, want ErrNotExecuted", a.err)
	}
	close(release)
	if a := <-third; a.err != nil {
		t.Errorf("the append of the caller that stayed: %v", a.err)
	}
	for stream, want := range map[string]uint64{"taken": 1, "queued": 0, "patient": 1} {
		if got := count(t, log, stream); got != want {
			t.Errorf("stream %q has %d events, want %d", stream, got, want)
		}
	}
}

// The calls of one transaction see each other, and one that fails spoils no other.
func TestCallsOfOneBatch(t *testing.T) {
	log, taken, release := held(t)
	first := send(t.Context(), log, 0, one("other", 0, 1))
	<-taken
	claim, second := one("w", 0, 1), one("w", 1, 1)
	calls := [][]eventlog.StreamAppend{
		{claim},
		{one("w", 0, 1)},                       // lost against the one before
		{one("key", 0, 1), one("w", 0, 1)},     // lost, so the key is not written either
		{claim},                                // a retry of the winner
		{second},                               // goes on from the winner
		{one("w", 3, 1)},                       // too far
		{one("key", 0, 1), one("w", 2, 1)},     // a new stream and one that the batch made
		{one("key", 1, 1), one("other", 1, 1)}, // both known by now
		{claim},                                // a retry again, after rows were flushed
	}
	var answers []chan answer
	for i, call := range calls {
		answers = append(answers, send(t.Context(), log, i+1, call...))
	}
	close(release)
	if a := <-first; a.err != nil || a.position != 1 {
		t.Fatalf("first append: %+v", a)
	}
	for i, want := range []eventlog.Position{2, 0, 0, 2, 3, 0, 5, 7, 2} {
		a := <-answers[i]
		var conflict *eventlog.Conflict
		if want == 0 && !errors.As(a.err, &conflict) || want != 0 && (a.err != nil || a.position != want) {
			t.Errorf("call %d: position %d, %v, want position %d (0: a conflict)", i, a.position, a.err, want)
		}
	}
	if w, key, other := count(t, log, "w"), count(t, log, "key"), count(t, log, "other"); w != 3 || key != 2 || other != 2 {
		t.Errorf("w, key and other have %d, %d and %d events, want 3, 2 and 2", w, key, other)
	}
}

// When a transaction fails, calls that were refused on account of its other calls must
// not be told of a conflict: what they lost against is not in the log.
func TestFailedBatchTellsNoConflict(t *testing.T) {
	taken, release := make(chan struct{}), make(chan struct{})
	begun, broken := 0, errors.New("broken")
	log := openWith(t, &Options{steps: steps{
		beforeBegin: func(*sqlite.Conn) error {
			if begun++; begun == 1 {
				close(taken)
				<-release
			}
			return nil
		},
		beforeCommit: func(*sqlite.Conn) error {
			if begun == 2 {
				return broken
			}
			return nil
		},
	}})
	first := send(t.Context(), log, 0, one("other", 0, 1))
	<-taken
	winner, loser := one("w", 0, 1), one("w", 0, 1)
	answers := []chan answer{send(t.Context(), log, 1, winner), send(t.Context(), log, 2, loser)}
	close(release)
	<-first
	for i := range answers {
		if a := <-answers[i]; !errors.Is(a.err, eventlog.ErrNotExecuted) || !errors.Is(a.err, broken) {
			t.Errorf("call %d: %v, want ErrNotExecuted", i, a.err)
		}
	}
	if _, err := log.Append(t.Context(), loser); err != nil {
		t.Errorf("the one that would have lost tries again: %v", err)
	}
	if n := count(t, log, "w"); n != 1 {
		t.Errorf("the stream has %d events, want 1", n)
	}
}

// Close finishes what is queued.
func TestCloseFinishesTheQueue(t *testing.T) {
	log, taken, release := held(t)
	answers := []chan answer{send(t.Context(), log, 0, one("s0", 0, 1))}
	<-taken
	for i := range 5 {
		answers = append(answers, send(t.Context(), log, i+1, one(fmt.Sprintf("s%d", i+1), 0, 1)))
	}
	closed := make(chan error, 1)
	go func() { closed <- log.Close() }()
	<-log.readers.closed
	if _, err := log.Append(t.Context(), one("late", 0, 1)); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("Append after Close = %v, want ErrClosed", err)
	}
	close(release)
	for i := range answers {
		if a := <-answers[i]; a.err != nil {
			t.Errorf("call %d: %v", i, a.err)
		}
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// The write-ahead log must not grow without bound, although the writer never pauses.
func TestWriteAheadLogIsReset(t *testing.T) {
	log := openWith(t, nil)
	log.writer.checkpoint.limit = 200
	for i := range uint64(4000) {
		if _, err := log.Append(t.Context(), one("s", i, 300)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(log.Path() + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	// Each commit writes two pages or more, so without a reset it would be 32 MB.
	if info.Size() > 8<<20 {
		t.Errorf("the write-ahead log has %d bytes after 4000 commits, want it to start over after 200 pages", info.Size())
	}
}

// Two names with the same hash are two streams.
func TestHashCollision(t *testing.T) {
	log := openWith(t, nil)
	for i, name := range []string{"first", "second"} {
		if _, err := log.Append(t.Context(), one(name, 0, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := sqlite.OpenConn(log.Path(), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	third := digestOf("third")
	err = execute(conn, fmt.Sprintf(`DROP TRIGGER streams_no_update;
		UPDATE streams SET hash = %d; UPDATE streams SET name = 'third' WHERE name = 'second'`, third.hash()))
	if err != nil {
		t.Fatal(err)
	}
	// The row of "first" has the hash of "third" too, and does not get in its way.
	for recorded, err := range log.ReadStream(t.Context(), "third", 0) {
		if err != nil || len(recorded.Data) != 2 {
			t.Errorf("ReadStream yields %d bytes, %v, want the 2 bytes of what was \"second\"", len(recorded.Data), err)
		}
	}
	if _, err := log.Append(t.Context(), one("third", 1, 1)); err != nil {
		t.Errorf("Append: %v", err)
	}
	if n := count(t, log, "third"); n != 2 {
		t.Errorf("the stream has %d events, want 2", n)
	}
}

// The writer forgets streams it has not met lately, and finds them again.
func TestNamesAreBounded(t *testing.T) {
	n := newNames()
	for i := range 5 * namesLimit {
		n.put(digestOf(fmt.Sprint(i)), stream{first: int64(i + 1)})
		if len(n.young) > namesLimit || len(n.old) > namesLimit {
			t.Fatalf("%d and %d names are kept", len(n.young), len(n.old))
		}
	}
	if s := n.get(digestOf(fmt.Sprint(5*namesLimit - 1))); s.first != 5*namesLimit {
		t.Errorf("the name met last was forgotten")
	}
	if s := n.get(digestOf("0")); s.first != 0 {
		t.Errorf("the name met first is still known")
	}
}

// A log that is opened through a link is the log, with what waits beside the file itself.
func TestOpenThroughALink(t *testing.T) {
	log := openWith(t, nil)
	if _, err := log.Append(t.Context(), one("s", 0, 1)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(log.Path(), link); err != nil {
		t.Fatal(err)
	}
	linked, err := Open(t.Context(), link, &Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer linked.Close()
	if linked.Path() != log.Path() {
		t.Errorf("the link leads to %s, want %s", linked.Path(), log.Path())
	}
	if n := count(t, linked, "s"); n != 1 {
		t.Errorf("%d events are there, want 1", n)
	}
}
