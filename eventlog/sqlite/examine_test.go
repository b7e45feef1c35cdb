package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	lib "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
)

// graded returns the grades of an examination, and fails the test where a bad one has no
// remedy.
func graded(t *testing.T, log *sqlite.Log) map[string]eventlog.Grade {
	t.Helper()
	findings, err := log.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grades := map[string]eventlog.Grade{}
	for _, f := range findings {
		grades[f.Check] = f.Grade
		if f.Detail == "" || (f.Grade == eventlog.Fine) != (f.Remedy == "") {
			t.Errorf("%+v: a remedy is there exactly where something is wrong", f)
		}
	}
	return grades
}

func TestExamine(t *testing.T) {
	path := fresh(t)
	open(t, path, nil).Close()
	log := open(t, path, &sqlite.Options{ReadOnly: true})
	for _, check := range []string{"file", "journal", "rules", "access"} {
		if g := graded(t, log)[check]; g != eventlog.Fine {
			t.Errorf("%s: %s", check, g)
		}
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if g := graded(t, log)["access"]; g != eventlog.Forbidden {
		t.Errorf("a file that may not be written: %s", g)
	}
	log.Close()
	if _, err := log.Examine(t.Context()); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("Examine of a closed log = %v", err)
	}
}

func TestExamineJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	open(t, path, nil).Close()
	conn, err := lib.OpenConn(path, lib.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode = delete", nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	log := open(t, path, &sqlite.Options{ReadOnly: true})
	if g := graded(t, log)["journal"]; g != eventlog.Risky {
		t.Errorf("a file without a write-ahead log: %s", g)
	}
}

// A file that lacks a rule, because an older version made it or somebody took it out, says
// so, and has it again once it was opened for writing.
func TestExamineRules(t *testing.T) {
	path := filled(t)
	raw(t, path, "DROP TRIGGER events_no_delete")
	reading := open(t, path, &sqlite.Options{ReadOnly: true})
	if g := graded(t, reading)["rules"]; g != eventlog.Risky {
		t.Errorf("a file without a rule: %s", g)
	}
	open(t, path, nil).Close()
	if g := graded(t, reading)["rules"]; g != eventlog.Fine {
		t.Errorf("after it was opened for writing: %s", g)
	}
}
