package submissions_test

import (
	"path/filepath"
	"testing"

	lib "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
	"holdfast/events"
	"holdfast/submissions"
)

// A backup has forgotten what came after it: a withdrawal that was paid since is not
// claimed there, and would be paid again. docs/BACKUP.md says what to do before anybody
// may submit; this shows that it has to be done, and that it is enough.
func TestARestoredBackupHasForgotten(t *testing.T) {
	t.Parallel()
	path, backup := filepath.Join(t.TempDir(), "holdfast.db"), filepath.Join(t.TempDir(), "backup.db")
	opened := func(path string) eventlog.Log {
		log, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { log.Close() })
		return log
	}
	b := &bank{}
	ledger := newLedger(t, opened(path), nil)
	var ids []events.WithdrawalID
	for _, reference := range []string{"paid-before", "paid-after", "paid-after-and-looked-up"} {
		w, err := ledger.Request(t.Context(), order(reference))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, w.ID)
	}
	taken(t)(ledger.Submit(t.Context(), "k-0", ids[0], b.Send, nil))
	conn, err := lib.OpenConn(path, lib.OpenReadOnly)
	if err == nil {
		err = sqlitex.Execute(conn, "VACUUM INTO ?", &sqlitex.ExecOptions{Args: []any{backup}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	taken(t)(ledger.Submit(t.Context(), "k-1", ids[1], b.Send, nil))
	lost := taken(t)(ledger.Submit(t.Context(), "k-2", ids[2], b.Send, nil))

	restored := newLedger(t, opened(backup), nil)
	if o := taken(t)(restored.Submit(t.Context(), "k-0", ids[0], b.Send, nil)); !o.Replayed || b.sends() != 3 {
		t.Errorf("what was paid before the backup: %+v, %d sends", o, b.sends())
	}
	taken(t)(restored.Submit(t.Context(), "k-1", ids[1], b.Send, nil))
	if b.sends() != 4 {
		t.Errorf("%d sends: a backup that remembers what came after it would need no page of its own", b.sends())
	}
	// What the rail's book has is recorded first, under any key; then nobody can send it.
	if _, err := restored.Resolve(t.Context(), "restored-2", submissions.Resolution{
		By: ann, Withdrawal: ids[2], Result: events.ResultSent, Reference: lost.Reference, Reason: "restored from a backup", Evidence: "the rail's book",
	}); err != nil {
		t.Fatal(err)
	}
	_, err = restored.Submit(t.Context(), "k-2", ids[2], b.Send, nil)
	if r := refused(t, err, submissions.CodeWithdrawalClaimed); r.Holder != "restored-2" || b.sends() != 4 {
		t.Errorf("%v, %d sends", r, b.sends())
	}
}
