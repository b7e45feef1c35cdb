package projections

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
)

const (
	// applicationID marks a projection's file: "Hpro" in ASCII.
	applicationID = 0x4870726F

	// busyTimeout is how long one process waits for another that writes the same file.
	busyTimeout = 10 * time.Second

	// readers is how many queries of one file run at the same time.
	readers = 4
)

// mark is how far a file is: the last event that is in its rows. The id tells whether a
// log is the one that they were made from.
type mark struct {
	position eventlog.Position
	id       uuid.UUID
	events   uint64 // how many events of the log were gone through
}

// file is one version of one projection, in one SQLite file.
type file struct {
	projection *Projection
	path       string

	mu     sync.Mutex // one batch at a time
	writer *sqlite.Conn
	pool   *sqlitex.Pool
}

// create makes a file with empty tables. It fails if there is one already.
func create(p *Projection, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer conn.Close()
	var script strings.Builder
	fmt.Fprintf(&script, "PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, p.Version)
	script.WriteString("CREATE TABLE mark (position INTEGER NOT NULL, id BLOB NOT NULL, events INTEGER NOT NULL) STRICT; INSERT INTO mark VALUES (0, zeroblob(16), 0);")
	for _, t := range p.tables {
		script.WriteString(t.create())
	}
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode = WAL", nil); err != nil {
		return err
	}
	return sqlitex.ExecuteScript(conn, script.String(), nil) // in one transaction
}

// open opens a file that create has made.
func open(p *Projection, path string) (*file, error) {
	// Losing the last batches in a crash loses no rows: they are made again.
	conn, err := connect(path, sqlite.OpenReadWrite, "PRAGMA synchronous = NORMAL", "PRAGMA cache_size = -65536")
	if err != nil {
		return nil, fmt.Errorf("projection %s: %w", p.Name, err)
	}
	if err := belongs(conn, p); err != nil {
		conn.Close()
		return nil, err
	}
	pool, err := sqlitex.NewPool(path, sqlitex.PoolOptions{Flags: sqlite.OpenReadOnly, PoolSize: readers})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("projection %s: %w", p.Name, err)
	}
	return &file{projection: p, path: path, writer: conn, pool: pool}, nil
}

func connect(path string, flags sqlite.OpenFlags, pragmas ...string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(busyTimeout)
	for _, p := range pragmas {
		if err := sqlitex.ExecuteTransient(conn, p, nil); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// belongs checks that a file is what its name says.
func belongs(conn *sqlite.Conn, p *Projection) error {
	application, err := sqlitex.ResultInt64(conn.Prep("SELECT application_id FROM pragma_application_id"))
	if err != nil {
		return fmt.Errorf("projection %s: %w", p.Name, err)
	}
	version, err := sqlitex.ResultInt64(conn.Prep("SELECT user_version FROM pragma_user_version"))
	if err != nil {
		return fmt.Errorf("projection %s: %w", p.Name, err)
	}
	if application != applicationID || version != int64(p.Version) {
		return fmt.Errorf("projection %s: its file is none of version %d; rebuild it", p.Name, p.Version)
	}
	return nil
}

func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.pool.Close(), f.writer.Close())
}

// at returns how far the file is.
func (f *file) at(ctx context.Context) (m mark, err error) {
	err = f.read(ctx, func(_ *sqlite.Conn, at mark) error {
		m = at
		return nil
	})
	return m, err
}

// read runs a query on one state of the file, and says how far that state is.
func (f *file) read(ctx context.Context, query func(*sqlite.Conn, mark) error) (err error) {
	defer func() { // a query that the context has interrupted says so in words of SQLite's
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	conn, err := f.pool.Take(ctx)
	if err != nil {
		return fmt.Errorf("projection %s: %w", f.projection.Name, err)
	}
	defer f.pool.Put(conn)
	defer sqlitex.Save(conn)(&err)
	m, err := readMark(conn)
	if err != nil {
		return fmt.Errorf("projection %s: %w", f.projection.Name, err)
	}
	return query(conn, m)
}

func readMark(conn *sqlite.Conn) (m mark, err error) {
	stmt := conn.Prep("SELECT position, id, events FROM mark")
	defer stmt.Reset()
	switch row, err := stmt.Step(); {
	case err != nil:
		return m, err
	case !row:
		return m, errors.New("it does not say how far it is; rebuild it")
	}
	m.position, m.events = eventlog.Position(stmt.ColumnInt64(0)), uint64(stmt.ColumnInt64(2))
	stmt.ColumnBytes(1, m.id[:])
	return m, nil
}

// write puts changes into the rows and moves the mark, in one transaction. It does
// neither when another process was faster: the mark that it returns then says how far.
func (f *file) write(from, to mark, c *changes) (m mark, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end, err := sqlitex.ImmediateTransaction(f.writer)
	if err != nil {
		return from, fmt.Errorf("projection %s: %w", f.projection.Name, err)
	}
	defer end(&err)
	if m, err = readMark(f.writer); err != nil || m != from {
		return m, err
	}
	for _, t := range f.projection.tables {
		if err := f.flush(t, c.of[t]); err != nil {
			return from, fmt.Errorf("projection %s: table %s: %w", f.projection.Name, t.name, err)
		}
	}
	stmt := f.writer.Prep("UPDATE mark SET position = ?, id = ?, events = ?")
	bind(stmt, row{int64(to.position), to.id[:], int64(to.events)})
	if err := run(stmt); err != nil {
		return from, fmt.Errorf("projection %s: %w", f.projection.Name, err)
	}
	return to, nil
}

// flush writes the rows of one table in the order of their keys.
func (f *file) flush(t *table, rows map[string]row) error {
	put, drop := f.writer.Prep(t.put()), f.writer.Prep(t.drop())
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		values, stmt := rows[key], put
		if len(values) == t.keys {
			stmt = drop
		}
		if t.sums {
			if err := f.addStored(t, values); err != nil {
				return err
			}
		}
		bind(stmt, values)
		if err := run(stmt); err != nil {
			return err
		}
	}
	return nil
}

// addStored adds to a row of sums what the file has under its key.
func (f *file) addStored(t *table, values row) error {
	stmt := f.writer.Prep(t.get())
	defer stmt.Reset()
	bind(stmt, values[:t.keys])
	found, err := stmt.Step()
	if err != nil || !found {
		return err
	}
	stored := slices.Clone(values)
	for i := t.keys; i < len(values); i++ {
		stored[i] = value(stmt, i-t.keys, t.columns[i].kind)
	}
	t.add(values, stored)
	return nil
}

func bind(stmt *sqlite.Stmt, values row) {
	for i, v := range values {
		switch v := v.(type) {
		case string:
			stmt.BindText(i+1, v)
		case int64:
			stmt.BindInt64(i+1, v)
		case []byte:
			stmt.BindBytes(i+1, v)
		default:
			panic(fmt.Sprintf("projections: a value of a %T", v))
		}
	}
}

// value reads one column of a row.
func value(stmt *sqlite.Stmt, i int, k kind) any {
	switch k {
	case number:
		return stmt.ColumnInt64(i)
	case blob:
		return columnBytes(stmt, i)
	}
	return stmt.ColumnText(i)
}

func columnBytes(stmt *sqlite.Stmt, i int) []byte {
	b := make([]byte, stmt.ColumnLen(i))
	stmt.ColumnBytes(i, b)
	return b
}

func run(stmt *sqlite.Stmt) error {
	_, err := stmt.Step()
	return errors.Join(err, stmt.Reset())
}

// remove deletes a file, and what SQLite keeps beside it.
func remove(path string) error {
	var failed error
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
