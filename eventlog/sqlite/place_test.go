package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
)

// What may pass by itself is told from what is no log, by SQLite's primary codes.
func TestOpenErrorsThatMayPass(t *testing.T) {
	p := &place{named: "log.db"}
	for code, passes := range map[sqlite.ResultCode]bool{
		sqlite.ResultBusy: true, sqlite.ResultBusySnapshot: true, sqlite.ResultLocked: true, sqlite.ResultProtocol: true,
		sqlite.ResultFull: true, sqlite.ResultIOErr: true, sqlite.ResultIOErrWrite: true, sqlite.ResultNoMem: true,
		sqlite.ResultNotADB: false, sqlite.ResultCorrupt: false, sqlite.ResultReadOnly: false, sqlite.ResultCantOpen: false,
		sqlite.ResultPerm: false, sqlite.ResultError: false,
	} {
		err := p.explain(code.ToError())
		var refused *eventlog.OpenError
		if !errors.As(err, &refused) || errors.Is(err, eventlog.ErrUnavailable) != passes || sqlite.ErrCode(err) != code {
			t.Errorf("%v is explained as %v, ErrUnavailable: %v, want %v", code, err, errors.Is(err, eventlog.ErrUnavailable), passes)
		}
	}
}

// A file that another process is making a log of is seen before that or after, never as
// half of it, which would be another program's file.
func TestIdentifyWhileCreating(t *testing.T) {
	p := &place{path: filepath.Join(t.TempDir(), "log.db")}
	options, err := (*Options)(nil).filled()
	if err != nil {
		t.Fatal(err)
	}
	creator, err := p.connect(&options, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer creator.Close()
	if err := execute(creator, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"); err != nil {
		t.Fatal(err)
	}
	looker, err := p.connect(&options, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer looker.Close()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			err := execute(creator, fmt.Sprintf("BEGIN IMMEDIATE; CREATE TABLE t (x); PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;"+
				"BEGIN IMMEDIATE; DROP TABLE t; PRAGMA application_id = 0; PRAGMA user_version = 0; COMMIT;", applicationID, schemaVersion))
			if err != nil {
				done <- err
				return
			}
		}
	}()
	for range 3000 {
		id, err := identify(looker)
		if whole := (identity{applicationID, schemaVersion, 1}); err != nil || !id.empty() && id != whole {
			t.Errorf("identify = %+v, %v, want nothing or %+v", id, err, whole)
			break
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Errorf("creating: %v", err)
	}
}
