package submissions_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/eventlog"
	"holdfast/eventlog/kurrent"
	"holdfast/eventlog/sqlite"
	"holdfast/internal/kurrentnode"
	"holdfast/rail/simulated"
	"holdfast/submissions"
)

// engine is an engine whose logs several processes can share.
type engine string

const (
	onSQLite    engine = "SQLite"
	onKurrentDB engine = "KurrentDB"
)

// place returns where a new log is: a path, or the URL of a node in this process.
func (e engine) place(t *testing.T) string {
	if e == onKurrentDB {
		return kurrentnode.Keep(t).URL()
	}
	return filepath.Join(t.TempDir(), "holdfast.db")
}

// openAt opens the log at a place, from any process.
func openAt(ctx context.Context, place string) (eventlog.Log, error) {
	if strings.HasPrefix(place, "esdb:") {
		return kurrent.Open(ctx, place, nil)
	}
	return sqlite.Open(ctx, place, nil)
}

// place is a log and a rail's book, for several processes.
type place struct {
	*fixture
	path, book string
	rail       *simulated.Rail
}

func newPlace(t *testing.T, e engine, o *submissions.Options) *place {
	t.Helper()
	p := &place{path: e.place(t), book: filepath.Join(t.TempDir(), "book.jsonl")}
	log, err := openAt(t.Context(), p.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	if p.rail, err = simulated.Open(p.book, nil); err != nil {
		t.Fatal(err)
	}
	p.fixture = fixtureOn(t, log, o)
	return p
}
