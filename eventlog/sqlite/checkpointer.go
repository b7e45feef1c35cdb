package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"
)

const (
	// walPages is how many pages the write-ahead log may hold before they are moved
	// to the main file: 64 MiB. The longer one waits, the more often the same page
	// is in it several times and has to be moved only once.
	walPages = 16000

	// checkEvery is how many commits pass between two looks at the size of the
	// write-ahead log.
	checkEvery = 32
)

// checkpointer moves pages from the write-ahead log to the main file, in the writer's
// goroutine but after the callers have been answered. SQLite's own checkpoints would
// run inside COMMIT, and so delay the answers.
type checkpointer struct {
	size, passive *sqlite.Stmt
	// limit is the number of pages from which on it acts.
	limit   int64
	commits int
	room    room
}

func newCheckpointer(conn *sqlite.Conn) (*checkpointer, error) {
	c := &checkpointer{limit: walPages}
	var err error
	if c.size, err = conn.Prepare("PRAGMA wal_checkpoint(NOOP)"); err != nil {
		return nil, fmt.Errorf("prepare the checkpoint: %w", err)
	}
	if c.passive, err = conn.Prepare("PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		return nil, fmt.Errorf("prepare the checkpoint: %w", err)
	}
	return c, nil
}

// consider is called after every commit. A checkpoint that fails or that readers keep
// from finishing loses nothing: a later one does its work.
func (c *checkpointer) consider() {
	if c.commits++; c.commits < checkEvery {
		return
	}
	c.commits = 0
	pages, moved := pagesOf(c.size)
	if pages-moved >= c.limit {
		c.finish()
		return
	}
	c.room.ensure(pages)
}

// finish moves what can be moved without waiting for anybody.
func (c *checkpointer) finish() {
	pagesOf(c.passive)
}

// pagesOf runs a checkpoint statement and returns how many pages the write-ahead log
// has and how many of them are in the main file; zeros if it failed.
func pagesOf(stmt *sqlite.Stmt) (pages, moved int64) {
	if row, err := stmt.Step(); err == nil && row {
		pages, moved = stmt.ColumnInt64(1), stmt.ColumnInt64(2)
	}
	_ = stmt.Reset()
	return pages, moved
}
