package projections

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// shown is how many differences a comparison keeps.
const shown = 20

// Comparison is what is different between two files of a projection.
type Comparison struct {
	// Rows counts the rows that were compared, Different those that are not the same in
	// both, or in one file only.
	Rows, Different uint64
	// First has the first 20 of the differences, in the order of tables and keys.
	First []Difference
	// Columns names the columns and tables that only one of the files has: the two are
	// different versions, and only what they have in common was compared.
	Columns []string
}

// Same reports whether nothing is different.
func (c *Comparison) Same() bool { return c.Different == 0 && len(c.Columns) == 0 }

// Difference is one row that is not the same in both files.
type Difference struct {
	Table string
	// Key is the row's key, as text.
	Key string
	// Column is empty for a row that only one of the files has.
	Column string
	// Before and After are the values, as text; "(no row)" where there is none.
	Before, After string
}

const noRow = "(no row)"

// layout is a table as its file has it.
type layout struct {
	keys    []string
	columns []string
}

// compare goes through two files, each in a state of its own.
func compare(ctx context.Context, before, after *sqlite.Conn) (*Comparison, error) {
	c := &Comparison{}
	old, err := layouts(before)
	if err != nil {
		return nil, err
	}
	now, err := layouts(after)
	if err != nil {
		return nil, err
	}
	for _, name := range union(old, now) {
		a, inOld := old[name]
		b, inNew := now[name]
		if !inOld || !inNew || !slices.Equal(a.keys, b.keys) {
			c.Columns = append(c.Columns, fmt.Sprintf("table %s: %v before, %v now", name, a.keys, b.keys))
			continue
		}
		common := slices.DeleteFunc(slices.Clone(a.columns), func(n string) bool { return !slices.Contains(b.columns, n) })
		for _, column := range slices.Concat(a.columns, b.columns) {
			if !slices.Contains(common, column) {
				c.Columns = append(c.Columns, fmt.Sprintf("%s.%s", name, column))
			}
		}
		if err := c.rows(ctx, name, layout{a.keys, common}, before, after); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func union(a, b map[string]layout) []string {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// layouts returns the tables of a file, without its mark.
func layouts(conn *sqlite.Conn) (map[string]layout, error) {
	tables := map[string]layout{}
	const query = `SELECT t.name, c.name, c.pk FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
		WHERE t.type = 'table' AND t.name <> 'mark' ORDER BY t.name, c.cid`
	err := sqlitex.Execute(conn, query, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		l := tables[s.ColumnText(0)]
		l.columns = append(l.columns, s.ColumnText(1))
		if s.ColumnInt64(2) > 0 {
			l.keys = append(l.keys, s.ColumnText(1))
		}
		tables[s.ColumnText(0)] = l
		return nil
	}})
	return tables, err
}

// rows compares one table, both sides of which come in the order of the key.
func (c *Comparison) rows(ctx context.Context, table string, l layout, before, after *sqlite.Conn) error {
	query := fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", strings.Join(slices.Concat(l.keys, l.columns[len(l.keys):]), ", "), table, strings.Join(l.keys, ", "))
	a, b := side{stmt: before.Prep(query)}, side{stmt: after.Prep(query)}
	defer a.stmt.Reset()
	defer b.stmt.Reset()
	a.next()
	b.next()
	for a.row || b.row {
		if c.Rows++; c.Rows%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		order := 0
		switch {
		case !a.row:
			order = 1
		case !b.row:
			order = -1
		default:
			order = compareKeys(a.stmt, b.stmt, len(l.keys))
		}
		switch {
		case order < 0:
			c.differ(Difference{Table: table, Key: a.key(len(l.keys)), Before: "a row", After: noRow})
			a.next()
		case order > 0:
			c.differ(Difference{Table: table, Key: b.key(len(l.keys)), Before: noRow, After: "a row"})
			b.next()
		default:
			c.columns(table, l, &a, &b)
			a.next()
			b.next()
		}
	}
	if a.err != nil {
		return a.err
	}
	return b.err
}

// columns compares two rows with the same key.
func (c *Comparison) columns(table string, l layout, a, b *side) {
	for i := len(l.keys); i < len(l.columns); i++ {
		if x, y := shownValue(a.stmt, i), shownValue(b.stmt, i); x != y {
			c.differ(Difference{Table: table, Key: a.key(len(l.keys)), Column: l.columns[i], Before: x, After: y})
			return
		}
	}
}

func (c *Comparison) differ(d Difference) {
	c.Different++
	if len(c.First) < shown {
		c.First = append(c.First, d)
	}
}

// side is one of the two tables, at one row.
type side struct {
	stmt *sqlite.Stmt
	row  bool
	err  error
}

func (s *side) next() {
	if s.err == nil {
		s.row, s.err = s.stmt.Step()
	}
	s.row = s.row && s.err == nil
}

func (s *side) key(columns int) string {
	parts := make([]string, columns)
	for i := range parts {
		parts[i] = shownValue(s.stmt, i)
	}
	return strings.Join(parts, " ")
}

// compareKeys orders two rows as SQLite does.
func compareKeys(a, b *sqlite.Stmt, columns int) int {
	for i := range columns {
		order := 0
		if a.ColumnType(i) == sqlite.TypeInteger && b.ColumnType(i) == sqlite.TypeInteger {
			order = int(min(max(a.ColumnInt64(i)-b.ColumnInt64(i), -1), 1))
		} else {
			order = bytes.Compare(columnBytes(a, i), columnBytes(b, i))
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// shownValue is a value as a person reads it.
func shownValue(stmt *sqlite.Stmt, i int) string {
	if stmt.ColumnType(i) == sqlite.TypeBlob {
		return fmt.Sprintf("%q", columnBytes(stmt, i))
	}
	return stmt.ColumnText(i)
}

// CompareWith brings the live file of a projection, and that of the same one of another
// set, to the ends of their logs, and compares the two: for a log that was copied to
// another engine, where only positions are others. Errors are those of [Set.CatchUp].
func (s *Set) CompareWith(ctx context.Context, other *Set, p *Projection) (c *Comparison, err error) {
	files := [2]*file{}
	for i, set := range []*Set{s, other} {
		if files[i], err = set.live(ctx, p); err != nil {
			return nil, err
		}
		if err := advance(ctx, set.log, files[i:i+1], 0, false, nil); err != nil {
			return nil, err
		}
	}
	err = files[0].read(ctx, func(before *sqlite.Conn, _ mark) error {
		return files[1].read(ctx, func(after *sqlite.Conn, _ mark) (err error) {
			c, err = compare(ctx, before, after)
			return err
		})
	})
	return c, err
}
