package sqlite

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
)

const (
	// pageEvents and pageBytes bound what is read in one go, and with it the memory
	// and the length of the read transaction.
	pageEvents = 512
	pageBytes  = 4 << 20

	// typesLimit is how many event types a reader remembers, to share their strings.
	typesLimit = 256
)

// reader is one read-only connection with its statements.
type reader struct {
	conn *sqlite.Conn
	// find is the look-up of a stream's number; stream and all read events.
	find, begins, stream, all *sqlite.Stmt
	// last asks for the position of the last event.
	last *sqlite.Stmt

	types   map[string]string
	scratch [eventlog.MaxEventType]byte
}

func newReader(p *place, options *Options) (*reader, error) {
	conn, err := p.connectReader(options)
	if err != nil {
		return nil, p.explain(err)
	}
	r := &reader{conn: conn, types: make(map[string]string)}
	for _, s := range []struct {
		stmt **sqlite.Stmt
		text string
	}{
		{&r.find, "SELECT first FROM streams WHERE hash = ? AND name = ?"},
		{&r.begins, "SELECT 1 FROM events WHERE stream = ? AND revision = 0"},
		{&r.stream, "SELECT position, revision, id, type, data, metadata FROM events WHERE stream = ? AND revision >= ? ORDER BY revision"},
		{&r.all, fmt.Sprintf("SELECT e.position, e.revision, e.id, e.type, e.data, e.metadata, s.name FROM events AS e "+
			"CROSS JOIN streams AS s ON s.first = e.stream WHERE e.position > ? ORDER BY e.position LIMIT %d", pageEvents)},
		{&r.last, "SELECT max(position) FROM events"},
	} {
		if *s.stmt, err = conn.Prepare(s.text); err != nil {
			conn.Close()
			return nil, p.fault("tables of the log are missing in it", "restore the file from a backup", err)
		}
	}
	return r, nil
}

// readStream reads events of a stream from revision from on, in order, until there are
// no more or the page is full; more says that it is. It returns [*eventlog.Damaged] if
// the stream does not start at revision 0 or a revision is missing (SPEC D5), or an
// error of SQLite.
func (r *reader) readStream(name string, from uint64) (page []eventlog.Recorded, more bool, err error) {
	// The look-up stays open until the end, so that all statements see one state of
	// the file and its locks are taken once.
	defer r.find.Reset()
	d := digestOf(name)
	r.find.BindInt64(1, d.hash())
	r.find.BindText(2, name)
	exists, err := r.find.Step()
	if err != nil || !exists {
		return nil, false, err
	}
	first := r.find.ColumnInt64(0)
	if from > 0 {
		if err := r.checkBeginning(first, name); err != nil {
			return nil, false, err
		}
	}
	defer r.stream.Reset()
	r.stream.BindInt64(1, first)
	r.stream.BindInt64(2, int64(from))
	for size := 0; size < pageBytes && len(page) < pageEvents; {
		exists, err := r.stream.Step()
		if err != nil {
			return page, false, err
		}
		if !exists {
			if len(page) == 0 && from == 0 {
				return nil, false, empty(name)
			}
			return page, false, nil
		}
		want := from + uint64(len(page))
		if uint64(r.stream.ColumnInt64(1)) != want {
			return page, false, eventlog.Missing(name, want)
		}
		event, n, err := r.event(r.stream, name)
		if err != nil {
			return page, false, err
		}
		page = append(page, event)
		size += n
	}
	return page, true, nil
}

// checkBeginning returns [*eventlog.Damaged] unless a stream has an event 0.
func (r *reader) checkBeginning(first int64, name string) error {
	defer r.begins.Reset()
	r.begins.BindInt64(1, first)
	exists, err := r.begins.Step()
	if err != nil {
		return err
	}
	if !exists {
		return eventlog.Missing(name, 0)
	}
	return nil
}

// readAll reads one page of the log: what is there of it, past positions that are
// missing. Fewer events than a full page, and no error, means that it has reached the
// end. It returns [*eventlog.Damaged] for a row that is no event, or an error of SQLite.
func (r *reader) readAll(after eventlog.Position) (page []eventlog.Recorded, more bool, err error) {
	defer r.all.Reset()
	r.all.BindInt64(1, int64(after))
	for size := 0; size < pageBytes && len(page) < pageEvents; {
		exists, err := r.all.Step()
		if err != nil || !exists {
			return page, false, err
		}
		event, n, err := r.event(r.all, r.all.ColumnText(6))
		if err != nil {
			return page, false, err
		}
		page = append(page, event)
		size += n
	}
	return page, true, nil
}

// event decodes the row a statement is at, and says how many bytes it has. Data and
// metadata share one allocation.
func (r *reader) event(stmt *sqlite.Stmt, name string) (eventlog.Recorded, int, error) {
	e := eventlog.Recorded{
		Stream:   name,
		Position: eventlog.Position(stmt.ColumnInt64(0)),
		Revision: uint64(stmt.ColumnInt64(1)),
	}
	if n := stmt.ColumnBytes(2, e.ID[:]); n != len(e.ID) {
		return e, 0, &eventlog.Damaged{Stream: name, Kind: eventlog.Altered, Reason: fmt.Sprintf("the id of revision %d has %d bytes", e.Revision, n)}
	}
	e.Type = r.typeName(stmt.ColumnBytes(3, r.scratch[:]))
	data, metadata := stmt.ColumnLen(4), stmt.ColumnLen(5)
	buffer := make([]byte, data+metadata)
	e.Data = buffer[:data:data]
	e.Metadata = buffer[data:]
	stmt.ColumnBytes(4, e.Data)
	stmt.ColumnBytes(5, e.Metadata)
	return e, data + metadata, nil
}

// typeName returns the string in the first n bytes of the scratch, shared between
// events of the same type.
func (r *reader) typeName(n int) string {
	if known, ok := r.types[string(r.scratch[:n])]; ok {
		return known
	}
	name := string(r.scratch[:n])
	if len(r.types) < typesLimit {
		r.types[name] = name
	}
	return name
}

// readers is the pool of connections for reading.
type readers struct {
	idle chan *reader
	size int
	// closed is closed when the pool is.
	closed chan struct{}
}

func newReaders(p *place, options *Options) (*readers, error) {
	pool := &readers{idle: make(chan *reader, options.Readers), size: options.Readers, closed: make(chan struct{})}
	for range pool.size {
		r, err := newReader(p, options)
		if err != nil {
			for range len(pool.idle) {
				(<-pool.idle).conn.Close()
			}
			return nil, err
		}
		pool.idle <- r
	}
	return pool, nil
}

// borrow waits for an idle connection. It returns [eventlog.ErrClosed] or the context's
// cause.
func (p *readers) borrow(ctx context.Context) (*reader, error) {
	select {
	case <-p.closed:
		return nil, eventlog.ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case r := <-p.idle:
		return r, nil
	case <-p.closed:
		return nil, eventlog.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// giveBack returns a connection to the pool.
func (p *readers) giveBack(r *reader) { p.idle <- r }

// close refuses further reads, waits for the connections that are in use, and closes
// all. It must be called once.
func (p *readers) close() error {
	close(p.closed)
	var first error
	for range p.size {
		r := <-p.idle
		if err := r.conn.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
