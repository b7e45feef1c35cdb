package sqlite_test

import (
	"errors"
	"strings"
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

// An event missing from the log stops whoever reads all of it, and an end that is missing
// stops whoever wants to write: positions must not be given out twice.
func TestMissingPositions(t *testing.T) {
	path := fresh(t)
	log := open(t, path, nil)
	for _, stream := range []string{"a", "b", "c"} {
		if _, err := log.Append(t.Context(), single(stream, 0)); err != nil {
			t.Fatal(err)
		}
	}
	raw(t, path, "DROP TRIGGER events_no_delete; DELETE FROM events WHERE position = 2")
	n := 0
	for _, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err == nil {
			n++
			continue
		}
		wantDamaged(t, err, eventlog.WholeLog)
	}
	if n != 1 {
		t.Errorf("%d events were read before the gap, want 1", n)
	}
	raw(t, path, "DELETE FROM events WHERE position = 3")
	_, err := log.Append(t.Context(), single("d", 0))
	wantDamaged(t, err, eventlog.WholeLog)
}

func wantDamaged(t *testing.T, err error, stream string) {
	t.Helper()
	var damaged *eventlog.Damaged
	if !errors.As(err, &damaged) || damaged.Stream != stream {
		t.Errorf("error = %v, want a Damaged on %q", err, stream)
	}
}
