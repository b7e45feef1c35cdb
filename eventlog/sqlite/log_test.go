package sqlite_test

import (
	"path/filepath"
	"testing"

	lib "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
	"holdfast/eventlog/logtest"
	"holdfast/eventlog/sqlite"
)

// open opens a log in a file of its own; the test closes it.
func open(t *testing.T, path string, options *sqlite.Options) *sqlite.Log {
	t.Helper()
	log, err := sqlite.Open(t.Context(), path, options)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func fresh(t *testing.T) string { return filepath.Join(t.TempDir(), "log.db") }

// raw opens the file past the engine and runs statements on it.
func raw(t *testing.T, path string, script string) {
	t.Helper()
	conn, err := lib.OpenConn(path, lib.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteScript(conn, script, nil); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
}

func harness() logtest.Harness {
	return logtest.Harness{
		Open:            func(t *testing.T) eventlog.Log { return open(t, fresh(t), nil) },
		CommitsTogether: true,
		Reopen: func(t *testing.T, log eventlog.Log) eventlog.Log {
			path := log.(*sqlite.Log).Path()
			if err := log.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
			return open(t, path, nil)
		},
		Damage: func(t *testing.T, log eventlog.Log, stream string, revision uint64) {
			path := log.(*sqlite.Log).Path()
			conn, err := lib.OpenConn(path, lib.OpenReadWrite)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			err = sqlitex.ExecuteScript(conn, "DROP TRIGGER IF EXISTS events_no_delete", nil)
			if err == nil {
				err = sqlitex.Execute(conn, "DELETE FROM events WHERE revision = ?1 AND stream = (SELECT first FROM streams WHERE name = ?2)",
					&sqlitex.ExecOptions{Args: []any{int64(revision), stream}})
			}
			if err != nil || conn.Changes() != 1 {
				t.Fatalf("damaging %q at %d: %d rows, %v", stream, revision, conn.Changes(), err)
			}
		},
	}
}

func TestConformance(t *testing.T) { logtest.Run(t, harness()) }

func TestConformanceOneByOne(t *testing.T) {
	logtest.Run(t, logtest.Harness{
		Open: func(t *testing.T) eventlog.Log { return logtest.OneByOne(open(t, fresh(t), nil)) },
	})
}
