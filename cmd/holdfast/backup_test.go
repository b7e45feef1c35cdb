package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail/simulated"
)

// backup copies a log as docs/BACKUP.md says, while others write to it.
func backup(t *testing.T, from, to string) {
	t.Helper()
	conn, err := sqlite.OpenConn(from, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetBusyTimeout(10 * time.Second)
	if err := errors.Join(sqlitex.ExecuteTransient(conn, "VACUUM INTO '"+to+"'", nil), conn.Close()); err != nil {
		t.Fatal(err)
	}
}

// onlineBackup copies a log with SQLite's backup, as .backup of its shell does.
func onlineBackup(t *testing.T, from, to string) {
	t.Helper()
	source, err := sqlite.OpenConn(from, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := sqlite.OpenConn(to, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	copying, err := sqlite.NewBackup(target, "main", source, "main")
	if err != nil {
		t.Fatal(err)
	}
	_, err = copying.Step(-1)
	if err := errors.Join(err, copying.Close(), target.Close()); err != nil {
		t.Fatal(err)
	}
}

// recorded returns every event of a log.
func recorded(t *testing.T, url string) (all []eventlog.Recorded) {
	t.Helper()
	log, err := openLog(t.Context(), url, reads)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for r, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// A backup that is taken while processes submit opens, verifies, and is what the log was
// at one moment: its events are the first of the log's, byte for byte.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	path := filepath.Join(p.dir, "log.db")
	ids := p.requests(t, 30)
	var copies []string
	var mu sync.Mutex
	for i, r := range p.submits(t, ids, time.Minute, func(n int, _ ran) {
		if n < 5 || n > 25 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		to := filepath.Join(p.dir, fmt.Sprintf("copy-%d.db", n))
		[]func(*testing.T, string, string){backup, onlineBackup}[n%2](t, path, to)
		copies = append(copies, "sqlite:"+to)
	}) {
		if r.exit != 0 {
			t.Errorf("submit %d: %s", i, r)
		}
	}
	whole, lengths := recorded(t, p.log), map[int]bool{}
	for _, log := range copies {
		if r := p.process(t, "verify", "--log", log); r.exit != 0 {
			t.Errorf("%s", r)
		}
		events := recorded(t, log)
		lengths[len(events)] = true
		if diff := cmp.Diff(whole[:len(events)], events); diff != "" {
			t.Errorf("the copy is not the beginning of the log:\n%s", diff)
		}
	}
	if len(copies) != 21 || len(lengths) < 5 || lengths[len(whole)] && len(lengths) == 1 {
		t.Errorf("%d copies of %d different lengths, of %d events: that proves nothing", len(copies), len(lengths), len(whole))
	}
}

// A backup that is put back has forgotten every claim that was taken after it: what left
// meanwhile is paid a second time by whoever submits it again. After what docs/BACKUP.md
// has people do first, it is not.
func TestRestoredBackupForgets(t *testing.T) {
	t.Parallel()
	for _, follows := range []bool{false, true} {
		t.Run(fmt.Sprintf("its page is followed: %v", follows), func(t *testing.T) {
			p := newTestProgram(t)
			path, old := filepath.Join(p.dir, "log.db"), filepath.Join(p.dir, "old.db")
			ids := p.requests(t, 4)
			submit := func(i int) ran {
				return p.run(t, "submit", "--key", fmt.Sprintf("k-%d", i), "--withdrawal", ids[i])
			}
			submit(0)                                                                                                 // before the backup
			p.run(t, "submit", "--key", "k-1", "--withdrawal", ids[1], "--fault", "timeout-after", "--timeout", "1s") // unknown in it
			backup(t, path, old)
			submit(2)                 // forgotten
			ids = p.requests(t, 5)    // the last of them is forgotten altogether
			submit(4)                 // with its claim
			p.log = "sqlite:" + old   // the old log is put back
			left := p.book(t)         // 3 is still to be paid
			want := slices.Clone(ids) // by submits that are told nothing of the past
			if r := p.process(t, "verify"); r.exit != 0 {
				t.Errorf("verify cannot know of it, and says: %s", r)
			}
			if follows {
				p.tellWhatLeft(t)
			}
			if again := p.requests(t, 5); !slices.Equal(again, want) {
				t.Errorf("ids %v are now %v", want, again)
			}
			for i := range ids {
				submit(i)
			}
			after := p.book(t)
			for i, id := range ids {
				before := left[events.WithdrawalID(id)]
				paidAgain := !follows && (i == 2 || i == 4)
				if n := after[events.WithdrawalID(id)]; (n == 2) != paidAgain || n == 0 || before == 1 && n == 1 && paidAgain {
					t.Errorf("withdrawal %d left %d times, %d of them before the restoring", i, n, before)
				}
			}
			p.verified(t)
		})
	}
}

// tellWhatLeft is what docs/BACKUP.md has people do before the first submit on a log that
// was put back: every payment that the rail knows of is told to it.
func (p *testProgram) tellWhatLeft(t *testing.T) {
	t.Helper()
	for e, err := range simulated.Payments(filepath.Join(p.dir, "book.jsonl")) {
		if err != nil {
			t.Fatal(err)
		}
		id := string(e.Withdrawal)
		if r := p.run(t, "claimed-by", "--withdrawal", id); r.exit == 3 {
			p.requests(t, 5)
		}
		holder, state := p.state(t, id)
		if state == "sent" {
			continue
		}
		if holder == "" {
			holder = "restored-" + id
		}
		r := p.run(t, "resolve", "--key", holder, "--withdrawal", id, "--sent", e.Reference, "--reason", "a backup was put back", "--evidence", "the rail's book", "--yes")
		if r.exit != 0 {
			t.Errorf("%s", r)
		}
	}
}

// What docs/BACKUP.md warns of does what it says: the main file alone is an old log, and
// files that were copied one after another, while the log was written to, are no log.
func TestCopiesThatAreNoBackups(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	path := filepath.Join(p.dir, "log.db")
	ids := p.requests(t, 30)
	alone, torn := filepath.Join(p.dir, "alone.db"), filepath.Join(p.dir, "torn.db")
	copyFile(t, path, torn)
	for i, id := range ids[:20] { // what is in the main file afterwards
		if r := p.process(t, "submit", "--key", fmt.Sprintf("k-%d", i), "--withdrawal", id); r.exit != 0 {
			t.Fatal(r)
		}
	}
	killed := ids[20]
	if r := p.process(t, "submit", "--key", "killed", "--withdrawal", killed, "--fault", "die-after"); r.exit != -1 {
		t.Fatal(r)
	}
	copyFile(t, path, alone)
	copyFile(t, path+"-wal", torn+"-wal")

	if r := p.run(t, "verify", "--log", "sqlite:"+torn); r.exit == 0 {
		t.Errorf("files of two moments pass for a log: %s", r)
	}
	p.log = "sqlite:" + alone
	if r := p.run(t, "verify"); r.exit != 0 {
		t.Errorf("an old log contradicts nothing: %s", r)
	}
	if _, state := p.state(t, killed); state != "requested" || p.left(t, killed) != 1 {
		t.Errorf("in the main file alone, what left is %s", state)
	}
}

// copyFile copies in another process, so that none of this process's locks are dropped.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
