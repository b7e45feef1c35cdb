package sqlite

import (
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
)

// insertSizes are the numbers of rows that one INSERT may carry. A statement with
// several rows keeps its place in the tree and so costs less per row; still larger ones
// measured slower.
var insertSizes = [...]int{4, 2, 1}

// headWindow is how many events at the end of a stream are looked at when its head is
// asked: a stream that is not longer than this is checked as a whole for every append.
const headWindow = 16

// statements are the prepared statements of the writer's connection.
type statements struct {
	conn                    *sqlite.Conn
	begin, commit, rollback *sqlite.Stmt
	version                 *sqlite.Stmt
	ends, finds, heads      *sqlite.Stmt
	stored                  *sqlite.Stmt
	streams                 *sqlite.Stmt
	events                  [len(insertSizes)]*sqlite.Stmt
}

// prepare makes the writer's statements. It fails if the file does not have the tables.
func prepare(conn *sqlite.Conn) (*statements, error) {
	s := &statements{conn: conn}
	// A row that the file refuses ends the whole transaction anyway. With OR ROLLBACK,
	// SQLite need not be ready to undo one statement alone.
	texts := []struct {
		stmt **sqlite.Stmt
		text string
	}{
		{&s.begin, "BEGIN IMMEDIATE"},
		{&s.commit, "COMMIT"},
		{&s.rollback, "ROLLBACK"},
		{&s.version, "PRAGMA data_version"},
		{&s.ends, "SELECT (SELECT max(position) FROM events), (SELECT max(first) FROM streams)"},
		{&s.finds, "SELECT first FROM streams WHERE hash = ? AND name = ?"},
		{&s.heads, fmt.Sprintf("SELECT revision FROM events WHERE stream = ? ORDER BY revision DESC LIMIT %d", headWindow)},
		{&s.stored, "SELECT position, revision, id, type, data, metadata FROM events WHERE stream = ? AND revision >= ? ORDER BY revision"},
		{&s.streams, "INSERT OR ROLLBACK INTO streams (first, hash, name) VALUES (?, ?, ?)"},
	}
	for i, size := range insertSizes {
		rows := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?), ", size), ", ")
		texts = append(texts, struct {
			stmt **sqlite.Stmt
			text string
		}{&s.events[i], "INSERT OR ROLLBACK INTO events (stream, revision, id, type, data, metadata) VALUES " + rows})
	}
	for _, t := range texts {
		stmt, err := conn.Prepare(t.text)
		if err != nil {
			return nil, err
		}
		*t.stmt = stmt
	}
	return s, nil
}

// run executes a statement that returns no rows.
func run(stmt *sqlite.Stmt) error {
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}

// single runs a query that yields one row of one number, and returns it; 0 for NULL.
func single(stmt *sqlite.Stmt) (int64, error) {
	if _, err := stmt.Step(); err != nil {
		return 0, err
	}
	n := stmt.ColumnInt64(0)
	return n, stmt.Reset()
}

// end returns the position of the last event and the number of the newest stream, 0
// where there is none.
func (s *statements) end() (last, newest int64, err error) {
	if _, err := s.ends.Step(); err != nil {
		return 0, 0, err
	}
	last, newest = s.ends.ColumnInt64(0), s.ends.ColumnInt64(1)
	return last, newest, s.ends.Reset()
}

// find returns the number of a stream, or 0.
func (s *statements) find(hash int64, name string) (first int64, err error) {
	s.finds.BindInt64(1, hash)
	s.finds.BindText(2, name)
	row, err := s.finds.Step()
	if err != nil {
		return 0, err
	}
	if row {
		first = s.finds.ColumnInt64(0)
	}
	return first, s.finds.Reset()
}

// head returns how many events a stream has, or [*eventlog.Damaged] when it has none or
// when one of the last headWindow revisions is missing.
func (s *statements) head(first int64, name string) (uint64, error) {
	s.heads.BindInt64(1, first)
	defer s.heads.Reset()
	row, err := s.heads.Step()
	if err != nil {
		return 0, err
	}
	if !row {
		return 0, empty(name)
	}
	last := s.heads.ColumnInt64(0)
	for want := last - 1; want >= 0 && want > last-headWindow; want-- {
		row, err := s.heads.Step()
		if err != nil {
			return 0, err
		}
		if !row || s.heads.ColumnInt64(0) != want {
			return 0, eventlog.Missing(name, uint64(want))
		}
	}
	return uint64(last) + 1, nil
}

func (s *statements) insertStream(b birth) error {
	s.streams.BindInt64(1, b.first)
	s.streams.BindInt64(2, b.hash)
	s.streams.BindText(3, b.name)
	return run(s.streams)
}

// insertEvents writes rows at the positions behind the last one, which SQLite finds
// faster when it is not told them, and returns the position of the last of them.
func (s *statements) insertEvents(rows []row) (int64, error) {
	for i, size := range insertSizes {
		for len(rows) >= size {
			stmt := s.events[i]
			for j := range size {
				bindRow(stmt, j*6, &rows[j])
			}
			if err := run(stmt); err != nil {
				return 0, err
			}
			rows = rows[size:]
		}
	}
	return s.conn.LastInsertRowID(), nil
}

func bindRow(stmt *sqlite.Stmt, after int, r *row) {
	stmt.BindInt64(after+1, r.stream)
	stmt.BindInt64(after+2, r.revision)
	stmt.BindBytes(after+3, r.event.ID[:])
	stmt.BindText(after+4, r.event.Type)
	stmt.BindBytes(after+5, r.event.Data)
	stmt.BindBytes(after+6, r.event.Metadata)
}
