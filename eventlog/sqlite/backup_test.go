package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	lib "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
)

// A backup that is taken while others append, in the way that docs/BACKUP.md says, is a
// log by itself: the beginning of the one it was taken of, with everything that was
// acknowledged before the backup began.
func TestBackupUnderLoad(t *testing.T) {
	path := fresh(t)
	log := open(t, path, nil)
	var acknowledged atomic.Uint64
	var load sync.WaitGroup
	started, stop := make(chan struct{}), make(chan struct{})
	for w := range 4 {
		load.Go(func() {
			stream := fmt.Sprint("s-", w)
			for n := uint64(0); n < 2000; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := log.Append(t.Context(), single(stream, n)); err != nil {
					t.Error(err)
					return
				}
				if acknowledged.Add(1) == 50 {
					close(started)
				}
			}
		})
	}
	<-started
	var backups []string
	for i := range 3 {
		before := acknowledged.Load()
		backup := filepath.Join(t.TempDir(), fmt.Sprintf("backup-%d.db", i))
		conn, err := lib.OpenConn(path, lib.OpenReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		err = sqlitex.Execute(conn, "VACUUM INTO ?", &sqlitex.ExecOptions{Args: []any{backup}})
		if closing := conn.Close(); err != nil || closing != nil {
			t.Fatal(err, closing)
		}
		if n := uint64(len(everything(t, open(t, backup, &sqlite.Options{ReadOnly: true})))); n < before {
			t.Errorf("backup %d has %d events, and %d were acknowledged before it began", i, n, before)
		}
		backups = append(backups, backup)
	}
	close(stop)
	load.Wait()
	all := everything(t, log)
	for i, backup := range backups {
		restored := open(t, backup, nil)
		kept := everything(t, restored)
		for j, e := range kept {
			if e.Position != all[j].Position || e.Stream != all[j].Stream || e.Revision != all[j].Revision || e.ID != all[j].ID || string(e.Data) != string(all[j].Data) {
				t.Fatalf("backup %d: event %d is %v, and in the log %v", i, j, e, all[j])
			}
		}
		if len(kept) == len(all) {
			t.Logf("backup %d has the whole log: there was no load", i)
		}
		// It goes on as a log does.
		at := uint64(0)
		for _, e := range kept {
			if e.Stream == "s-0" {
				at = e.Revision + 1
			}
		}
		if _, err := restored.Append(t.Context(), single("s-0", at)); err != nil {
			t.Errorf("backup %d: %v", i, err)
		}
	}
}

func everything(t *testing.T, log eventlog.Log) (all []eventlog.Recorded) {
	t.Helper()
	for e, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}
