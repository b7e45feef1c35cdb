package projections

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/internal/workload"
)

// filled returns a log with at least n events.
func filled(t testing.TB, seed uint64, n int) (eventlog.Log, *workload.Workload) {
	t.Helper()
	log, w := memory.New(), workload.New(seed)
	if err := w.Fill(t.Context(), log, n); err != nil {
		t.Fatal(err)
	}
	return log, w
}

// later is a moment at which every attempt of a workload is over.
func later() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }

func opened(t testing.TB, dir string, log eventlog.Log) *Set {
	t.Helper()
	s, err := Open(dir, log, &Options{Clock: later})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func caughtUp(t testing.TB, s *Set) {
	t.Helper()
	if err := s.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// rowsOf returns every row of a projection's live file, as text, and how far it is.
func rowsOf(t testing.TB, s *Set, p *Projection) (lines []string, at mark) {
	t.Helper()
	f, err := s.live(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return dump(t, f)
}

func dump(t testing.TB, f *file) (lines []string, at mark) {
	t.Helper()
	err := f.read(context.Background(), func(conn *sqlite.Conn, m mark) error {
		at = m
		for _, table := range f.projection.tables {
			err := each(conn, table.ordered(), nil, func(r *sqlite.Stmt) {
				var b strings.Builder
				for i := range table.columns {
					fmt.Fprintf(&b, "|%s", shownValue(r, i))
				}
				lines = append(lines, table.name+b.String())
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, at
}

// allRows returns the rows of every projection.
func allRows(t testing.TB, s *Set) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, p := range All() {
		all[p.Name], _ = rowsOf(t, s, p)
	}
	return all
}

// head returns the position of the last event.
func head(t testing.TB, log eventlog.Log) eventlog.Position {
	t.Helper()
	p, err := log.(eventlog.Headed).Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newDir(t testing.TB) string { return filepath.Join(t.TempDir(), "projections") }
