package projections

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"holdfast/eventlog/sqlite"
	"holdfast/internal/workload"
)

// kills is how often the process of a rebuild is killed.
const kills = 20

// rebuiltAndKilled are the projections of that process: one whose rows change, and one
// whose rows are added up.
func rebuiltAndKilled() []*Projection { return []*Projection{outcomes(), totals()} }

// TestMain is the process that rebuilds, where a test has started it as that.
func TestMain(m *testing.M) {
	if path := os.Getenv("HOLDFAST_TEST_REBUILD"); path != "" {
		if err := rebuildAll(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func rebuildAll(path string) error {
	ctx := context.Background()
	log, err := sqlite.Open(ctx, path, &sqlite.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer log.Close()
	s, err := Open(path+"-projections", log, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, p := range rebuiltAndKilled() {
		progress := func(events uint64) { fmt.Println(events) }
		if _, err := s.Rebuild(ctx, p, progress); err != nil {
			return err
		}
	}
	return nil
}

// A rebuild whose process is killed goes on where it was, and ends with the rows of one
// that nobody disturbed (D6).
func TestKilledRebuilds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	log, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	w := workload.New(11)
	if err := w.Fill(t.Context(), log, 9_000); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	resumed, killed := 0, 0
	for range kills {
		before := built(t, path, log)
		if killedAfter(t, path, random.IntN(5)) {
			killed++
		}
		if built(t, path, log) > before {
			resumed++
		}
		// Commands go on.
		if err := w.Fill(t.Context(), log, 100); err != nil {
			t.Fatal(err)
		}
	}
	if killed < kills/2 || resumed < 2 {
		t.Errorf("%d of %d processes were killed, and %d of them got on: there was nothing to see", killed, kills, resumed)
	}
	s, undisturbed := opened(t, path+"-projections", log), opened(t, newDir(t), log)
	for _, p := range rebuiltAndKilled() {
		if _, err := s.Rebuild(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
		want, at := rowsOf(t, undisturbed, p)
		got, reached := rowsOf(t, s, p)
		if d := gocmp.Diff(want, got); d != "" || at != reached || len(got) == 0 {
			t.Errorf("%s: the rows at %d are not those at %d:\n%s", p.Name, reached.position, at.position, d)
		}
	}
}

// killedAfter kills a rebuild after so many of its batches, and somewhat later. It reports
// whether the rebuild had not ended before.
func killedAfter(t *testing.T, path string, batches int) bool {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), "HOLDFAST_TEST_REBUILD="+path)
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); batches > 0 && lines.Scan(); {
		batches--
	}
	_ = process.Process.Kill() // it may have ended
	return process.Wait() != nil
}

// built counts the events that are in any file so far.
func built(t *testing.T, path string, log *sqlite.Log) (events uint64) {
	t.Helper()
	s, err := Open(path+"-projections", log, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		events += l.Events
	}
	return events
}
