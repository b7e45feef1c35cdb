package sqlite_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lib "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
)

// An append that cannot get the write lock in time gives up, and can be repeated.
func TestBusy(t *testing.T) {
	path := fresh(t)
	log := open(t, path, &sqlite.Options{BusyTimeout: 30 * time.Millisecond})
	conn, err := lib.OpenConn(path, lib.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, "BEGIN IMMEDIATE", nil); err != nil {
		t.Fatal(err)
	}
	a := single("s", 0)
	_, err = log.Append(t.Context(), a)
	if !errors.Is(err, eventlog.ErrNotExecuted) || lib.ErrCode(err).ToPrimary() != lib.ResultBusy {
		t.Errorf("Append = %v, want ErrNotExecuted because of another writer", err)
	}
	if err := sqlitex.ExecuteTransient(conn, "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), a); err != nil {
		t.Errorf("Append = %v", err)
	}
}

// The file refuses to be changed by any tool, and shows the log to every tool.
func TestFileIsAppendOnlyAndReadable(t *testing.T) {
	path := filled(t)
	conn, err := lib.OpenConn(path, lib.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{
		"DELETE FROM events", "UPDATE events SET data = x'00'", "UPDATE events SET revision = 7",
		"DELETE FROM streams", "UPDATE streams SET name = 'other'",
		"INSERT INTO events SELECT position, stream, revision, id, type, x'00', metadata FROM events WHERE true ON CONFLICT DO UPDATE SET data = excluded.data",
		"UPDATE OR REPLACE events SET position = 1",
	} {
		err := sqlitex.ExecuteTransient(conn, statement, nil)
		if lib.ErrCode(err) != lib.ResultConstraintTrigger || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s = %v, want it to be refused: append-only", statement, err)
		}
	}
	var got []string
	err = sqlitex.ExecuteTransient(conn, "SELECT * FROM log", &sqlitex.ExecOptions{ResultFunc: func(stmt *lib.Stmt) error {
		for column := range stmt.ColumnCount() {
			got = append(got, stmt.ColumnName(column)+"="+stmt.ColumnText(column))
		}
		return nil
	}})
	if err != nil || len(got) != 7 || len(got[3]) != len("id=")+32 {
		t.Fatalf("the view shows %q, %v", got, err)
	}
	got[3] = "id"
	want := []string{"position=1", "stream=s", "revision=0", "id", "type=Tested", `data={"n":1}`, "metadata={}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the view (-want +got):\n%s", diff)
	}
	check := ""
	err = sqlitex.ExecuteTransient(conn, "PRAGMA integrity_check", &sqlitex.ExecOptions{ResultFunc: func(stmt *lib.Stmt) error {
		check = stmt.ColumnText(0)
		return nil
	}})
	if err != nil || check != "ok" {
		t.Errorf("the integrity check says %q, %v", check, err)
	}
}

// An end that is missing stops whoever wants to write: positions must not be given out
// twice.
func TestMissingEnd(t *testing.T) {
	path := fresh(t)
	log := open(t, path, nil)
	for _, stream := range []string{"a", "b", "c"} {
		if _, err := log.Append(t.Context(), single(stream, 0)); err != nil {
			t.Fatal(err)
		}
	}
	raw(t, path, "DROP TRIGGER events_no_delete; DELETE FROM events WHERE position = 3")
	_, err := log.Append(t.Context(), single("d", 0))
	wantDamaged(t, err, eventlog.WholeLog, eventlog.Truncated)
}

// A file whose own rules put rows elsewhere is not written to.
func TestRowsPutElsewhere(t *testing.T) {
	path := fresh(t)
	log := open(t, path, nil)
	if _, err := log.Append(t.Context(), single("s", 0)); err != nil {
		t.Fatal(err)
	}
	raw(t, path, `CREATE TRIGGER mine BEFORE INSERT ON events WHEN new.revision = 1 BEGIN
		INSERT INTO events VALUES (7, 1, 7, x'00', 'T', x'', x''); END`)
	_, err := log.Append(t.Context(), single("s", 1))
	wantDamaged(t, err, eventlog.WholeLog, eventlog.Altered)
	if head, err := log.Head(t.Context()); head != 1 || err != nil {
		t.Errorf("Head = %d, %v, want 1", head, err)
	}
}

// What the writer remembers of a stream does not outlive another writer's commit.
func TestOtherWriters(t *testing.T) {
	path := fresh(t)
	logs := []*sqlite.Log{open(t, path, nil), open(t, path, nil)}
	var conflict *eventlog.Conflict
	for at := range uint64(20) {
		winner, loser := logs[at/3%2], logs[(at/3+1)%2]
		if _, err := winner.Append(t.Context(), single("s", at)); err != nil {
			t.Fatalf("Append at %d: %v", at, err)
		}
		if at%2 == 0 {
			if _, err := loser.Append(t.Context(), single(fmt.Sprintf("new-%d", at), 0)); err != nil {
				t.Fatalf("Append to a stream of its own: %v", err)
			}
		}
		if _, err := loser.Append(t.Context(), single("s", at)); !errors.As(err, &conflict) || *conflict.Actual != at+1 {
			t.Errorf("Append at %d, which is taken = %v, want a conflict with %d events", at, err, at+1)
		}
		if _, err := loser.Append(t.Context(), single("new", 1)); !errors.As(err, &conflict) || *conflict.Actual != 0 {
			t.Errorf("Append to a stream that does not exist = %v, want a conflict", err)
		}
	}
	// The one that has seen that there is no such stream sees it once there is.
	if _, err := logs[0].Append(t.Context(), single("new", 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := logs[1].Append(t.Context(), single("new", 0)); !errors.As(err, &conflict) {
		t.Errorf("Append to a stream that another writer has made = %v, want a conflict", err)
	}
}

// Rows that the file does not take although they were checked show that somebody has
// changed the file. Nobody is invited to try again, and other streams are not affected.
func TestRefusedRows(t *testing.T) {
	for name, script := range map[string]string{
		"another index": "CREATE UNIQUE INDEX mine ON events (type) WHERE type = 'Refused'; ",
		"a trigger": "CREATE TRIGGER mine BEFORE INSERT ON events WHEN new.type = 'Refused' AND new.revision > 0 " +
			"BEGIN SELECT RAISE(ABORT, 'no'); END",
	} {
		t.Run(name, func(t *testing.T) {
			path := fresh(t)
			log := open(t, path, nil)
			refused := func(stream string, at uint64) eventlog.StreamAppend {
				a := single(stream, at)
				a.Events[0].Type = "Refused"
				return a
			}
			if _, err := log.Append(t.Context(), refused("s", 0), single("r", 0)); err != nil {
				t.Fatal(err)
			}
			raw(t, path, script)
			// Many at once, so that sound appends share a transaction with refused ones.
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() {
					stream := fmt.Sprintf("sound-%d", i)
					if _, err := log.Append(t.Context(), single(stream, 0)); err != nil {
						t.Errorf("Append to a sound stream: %v", err)
					}
					_, err := log.Append(t.Context(), single(stream, 1), refused("s", 1))
					wantDamaged(t, err, "s", eventlog.Altered)
					if _, err := log.Append(t.Context(), single(stream, 1)); err != nil {
						t.Errorf("Append to a sound stream: %v", err)
					}
				})
			}
			group.Wait()
			want := eventlog.Position(2 + 2*8)
			if head, err := log.Head(t.Context()); head != want || err != nil {
				t.Errorf("Head = %d, %v, want %d", head, err, want)
			}
		})
	}
}

func wantDamaged(t *testing.T, err error, stream string, kind eventlog.DamageKind) {
	t.Helper()
	var damaged *eventlog.Damaged
	if !errors.As(err, &damaged) || damaged.Stream != stream || damaged.Kind != kind || errors.Is(err, eventlog.ErrNotExecuted) {
		t.Errorf("error = %v, want a Damaged (%s) on %q alone", err, kind, stream)
	}
}
