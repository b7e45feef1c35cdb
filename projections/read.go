package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
	"holdfast/events"
)

// ErrBehind is the error of a reading that wants to be at least at a position that the log
// does not have.
var ErrBehind = errors.New("projections: the log does not have that position yet")

// ReadOption is something to be said about a reading.
type ReadOption func(*reading)

type reading struct{ atLeast eventlog.Position }

// AtLeast makes a reading show everything up to a position of the log, so that a caller
// sees its own writes. The projection catches up first if need be.
func AtLeast(p eventlog.Position) ReadOption {
	return func(r *reading) { r.atLeast = max(r.atLeast, p) }
}

// query reads the live file of a projection, in one state of it.
func (s *Set) query(ctx context.Context, p *Projection, options []ReadOption, read func(*sqlite.Conn) error) error {
	var r reading
	for _, o := range options {
		o(&r)
	}
	f, err := s.live(ctx, p)
	if err != nil {
		return err
	}
	if m, err := f.at(ctx); err != nil {
		return err
	} else if m.position < r.atLeast {
		if err := advance(ctx, s.log, []*file{f}, 0, false, nil); err != nil {
			return err
		}
	}
	return f.read(ctx, func(conn *sqlite.Conn, m mark) error {
		if m.position < r.atLeast {
			return fmt.Errorf("%w: position %d, and the log ends at %d", ErrBehind, r.atLeast, m.position)
		}
		return read(conn)
	})
}

// each calls do for every row of a query.
func each(conn *sqlite.Conn, sql string, values row, do func(*sqlite.Stmt)) error {
	stmt := conn.Prep(sql)
	defer stmt.Reset()
	bind(stmt, values)
	for {
		found, err := stmt.Step()
		if err != nil || !found {
			return err
		}
		do(stmt)
	}
}

// instant is a time as the log writes it: two of them sort as the times do.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return events.At(t).String()
}

// moment is the time that instant was made of.
func moment(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{} // an empty one
	}
	return t
}
