package sqlite

import (
	"bytes"
	"fmt"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
)

// row is one event that the batch is going to insert.
type row struct {
	stream   int64 // its number
	revision int64
	event    *eventlog.Event
}

// birth is one stream that the batch is going to create.
type birth struct {
	first, hash int64
	name        string
}

// batch is the work of one write transaction: first every call is checked, in order,
// each seeing what the calls before it are going to write; then everything that passed
// is inserted. So no call ever has to be undone, and one that fails spoils no other.
type batch struct {
	sql   *statements
	names *names
	// version is what SQLite said when it was last asked whether other connections
	// had committed, and epoch counts how often that had changed. What was read in
	// this epoch still holds.
	version int64
	epoch   uint64
	// next is the position that the next row gets; the rows' positions end there.
	next   int64
	rows   []row
	births []birth
	// careful says that the rows of each stream append are inserted at once, so that a
	// stream whose rows the file refuses is known.
	careful bool
	// found is scratch: per stream append of one call, what checking it found.
	found []finding
}

// finding is the outcome of checking one stream append.
type finding struct {
	name   digest
	stream stream
	// repeat is the position of the last event if all of them are in the log already.
	repeat eventlog.Position
}

// start begins the work in a fresh write transaction. Only another connection's commit
// can have changed what this one has read or written before.
func (b *batch) start() error {
	b.rows, b.births = b.rows[:0], b.births[:0]
	version, err := single(b.sql.version)
	if err != nil || version == b.version && b.epoch > 0 {
		return err
	}
	b.version = version
	b.epoch++
	last, newest, err := b.sql.end()
	if err != nil {
		return err
	}
	if newest > last {
		return &eventlog.Damaged{Stream: eventlog.WholeLog, Kind: eventlog.Truncated, Reason: fmt.Sprintf(
			"it ends at position %d, but a stream starts at position %d", last, newest)}
	}
	b.next = last + 1
	return nil
}

// add checks one call and, if it passes, puts its events among the rows to insert. The
// verdict is the call's result, to be told once the transaction is committed. A
// failure is an error of SQLite that ends the whole transaction.
func (b *batch) add(c *call) (verdict result, failure error) {
	b.found = b.found[:0]
	for i := range c.appends {
		f, err := b.check(&c.appends[i])
		switch err.(type) {
		case nil:
			b.found = append(b.found, f)
		case *eventlog.Conflict, *eventlog.Damaged:
			return result{err: err}, nil
		default:
			return result{}, err
		}
	}
	for i := range c.appends {
		if verdict.position = b.found[i].repeat; verdict.position == 0 {
			verdict.position = b.plan(&c.appends[i], &b.found[i])
			if !b.careful {
				continue
			}
			if err := b.insert(); refusesRows(err) {
				return result{}, &eventlog.Damaged{Stream: c.appends[i].Stream, Kind: eventlog.Altered, Reason: fmt.Sprintf(
					"the file does not take its event %d: %v", c.appends[i].At, err)}
			} else if err != nil {
				return result{}, err
			}
		}
	}
	return verdict, nil
}

// check decides one stream append. It returns [*eventlog.Conflict] unless the stream
// holds exactly the stated number of events, or these very events at that place;
// [*eventlog.Damaged] when the stream is not what it can be (SPEC D5); or an error of
// SQLite.
func (b *batch) check(a *eventlog.StreamAppend) (finding, error) {
	f := finding{name: digestOf(a.Stream)}
	f.stream = b.names.get(f.name)
	if f.stream.epoch != b.epoch {
		if err := b.ask(&f, a.Stream); err != nil {
			return finding{}, err
		}
	}
	if f.stream.count == a.At {
		return f, nil
	}
	if a.At+uint64(len(a.Events)) <= f.stream.count {
		var err error
		if f.repeat, err = b.repeated(f.stream.first, a); err != nil {
			return finding{}, err
		}
		if f.repeat != 0 {
			return f, nil
		}
	}
	actual := f.stream.count
	return finding{}, &eventlog.Conflict{Stream: a.Stream, At: a.At, Actual: &actual}
}

// ask reads the head of a stream from the database, inside this transaction.
func (b *batch) ask(f *finding, name string) (err error) {
	s := &f.stream
	if s.first == 0 {
		if s.first, err = b.sql.find(f.name.hash(), name); err != nil {
			return err
		}
	}
	s.count = 0
	if s.first != 0 {
		if s.count, err = b.sql.head(s.first, name); err != nil {
			return err
		}
	}
	s.epoch = b.epoch
	b.names.put(f.name, *s)
	return nil
}

// forget drops what was read and planned, which is what a failed transaction calls for.
func (b *batch) forget() {
	b.names.forget()
	b.epoch = 0
}

// plan puts the events of a checked append among the rows, and returns the position of
// the last one.
func (b *batch) plan(a *eventlog.StreamAppend, f *finding) eventlog.Position {
	s := &f.stream
	if s.first == 0 {
		s.first = b.next
		b.births = append(b.births, birth{first: s.first, hash: f.name.hash(), name: a.Stream})
	}
	for i := range a.Events {
		b.rows = append(b.rows, row{stream: s.first, revision: int64(a.At) + int64(i), event: &a.Events[i]})
	}
	s.count += uint64(len(a.Events))
	b.names.put(f.name, *s)
	b.next += int64(len(a.Events))
	return eventlog.Position(b.next - 1)
}

// repeated returns the position of the last event of an append if all of its events are
// in the log at their revisions, with the same ids, types and bytes; otherwise 0.
func (b *batch) repeated(first int64, a *eventlog.StreamAppend) (eventlog.Position, error) {
	if err := b.insert(); err != nil { // an earlier call of this batch may have them
		return 0, err
	}
	stmt := b.sql.stored
	stmt.BindInt64(1, first)
	stmt.BindInt64(2, int64(a.At))
	defer stmt.Reset()
	var last int64
	for i := range a.Events {
		exists, err := stmt.Step()
		if err != nil {
			return 0, err
		}
		if !exists || !sameEvent(stmt, &a.Events[i], int64(a.At)+int64(i)) {
			return 0, nil
		}
		last = stmt.ColumnInt64(0)
	}
	return eventlog.Position(last), nil
}

// sameEvent compares the row that a statement is at, as statements.stored selects it,
// with an event: ids alone prove nothing (a caller may reuse one by mistake).
func sameEvent(stmt *sqlite.Stmt, e *eventlog.Event, revision int64) bool {
	var id [16]byte
	return stmt.ColumnInt64(1) == revision &&
		stmt.ColumnLen(2) == len(id) && stmt.ColumnBytes(2, id[:]) == len(id) && id == e.ID &&
		stmt.ColumnText(3) == e.Type &&
		sameBytes(stmt, 4, e.Data) &&
		sameBytes(stmt, 5, e.Metadata)
}

func sameBytes(stmt *sqlite.Stmt, column int, want []byte) bool {
	n := stmt.ColumnLen(column)
	if n != len(want) {
		return false
	}
	got := make([]byte, n)
	stmt.ColumnBytes(column, got)
	return bytes.Equal(got, want)
}

// insert writes what has been planned so far. It returns [*eventlog.Damaged] if the rows
// did not get the positions that they were planned at, or an error of SQLite.
func (b *batch) insert() error {
	if len(b.rows) == 0 {
		return nil
	}
	for _, s := range b.births {
		if err := b.sql.insertStream(s); err != nil {
			return err
		}
	}
	last, err := b.sql.insertEvents(b.rows)
	if err != nil {
		return err
	}
	if last != b.next-1 {
		return &eventlog.Damaged{Stream: eventlog.WholeLog, Kind: eventlog.Altered, Reason: fmt.Sprintf(
			"an event that belongs at position %d was put at position %d, so the file has rules of its own", b.next-1, last)}
	}
	b.births, b.rows = b.births[:0], b.rows[:0]
	return nil
}
