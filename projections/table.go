package projections

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// table is one table of a projection. Its rows are found by a key of one or more columns,
// which come first; they are kept in the order of that key, so that two files with the
// same rows list them alike.
type table struct {
	name    string
	keys    int
	columns []column
	indexes []string // what is indexed beside the key, as in CREATE INDEX
	// sums says that what is put is added to what is there: whole numbers and decimals.
	sums bool
}

type column struct {
	name string
	kind kind
}

// kind is how a column's values are stored.
type kind string

const (
	text    kind = "TEXT"    // a string
	number  kind = "INTEGER" // an int64
	blob    kind = "BLOB"    // a []byte
	decimal kind = "DECIMAL" // exact, canonical, in a TEXT column
)

// create is the SQL that makes the table.
func (t *table) create() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (", t.name)
	for _, c := range t.columns {
		stored := c.kind
		if stored == decimal {
			stored = text
		}
		fmt.Fprintf(&b, "%s %s NOT NULL, ", c.name, stored)
	}
	fmt.Fprintf(&b, "PRIMARY KEY (%s)) STRICT, WITHOUT ROWID;", strings.Join(t.names()[:t.keys], ", "))
	for i, columns := range t.indexes {
		fmt.Fprintf(&b, "CREATE INDEX %s_%d ON %s (%s);", t.name, i+1, t.name, columns)
	}
	return b.String()
}

func (t *table) names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// byKey is a WHERE clause that finds one row.
func (t *table) byKey() string {
	return strings.Join(t.names()[:t.keys], " = ? AND ") + " = ?"
}

func (t *table) put() string {
	return fmt.Sprintf("INSERT OR REPLACE INTO %s VALUES (%s)", t.name, strings.Join(slices.Repeat([]string{"?"}, len(t.columns)), ", "))
}

func (t *table) drop() string { return fmt.Sprintf("DELETE FROM %s WHERE %s", t.name, t.byKey()) }

func (t *table) get() string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", strings.Join(t.names()[t.keys:], ", "), t.name, t.byKey())
}

// ordered is every row in the order of the key.
func (t *table) ordered() string {
	return fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", strings.Join(t.names(), ", "), t.name, strings.Join(t.names()[:t.keys], ", "))
}

// row is the values of a row: a string, an int64 or a []byte for each column. What stands
// for a decimal is its text.
type row []any

// changes are what steps change: for each table the rows that are new, by their keys. A
// row with nothing but its key is one that is gone. The last change of a row counts.
type changes struct {
	of map[*table]map[string]row
}

func newChanges(tables []*table) *changes {
	c := &changes{of: make(map[*table]map[string]row, len(tables))}
	for _, t := range tables {
		c.of[t] = map[string]row{}
	}
	return c
}

// put makes a row what it says, or adds it to what is there in a table of sums.
func (c *changes) put(t *table, values ...any) {
	rows, key := c.of[t], keyOf(values[:t.keys])
	if before := rows[key]; t.sums && before != nil {
		t.add(values, before)
	}
	rows[key] = values
}

// drop removes the row with a key, if it is there.
func (c *changes) drop(t *table, key ...any) {
	c.of[t][keyOf(key)] = row(key)
}

func (c *changes) clear() {
	for _, rows := range c.of {
		clear(rows)
	}
}

// keyOf makes one string of a key, which sorts as SQLite sorts the key.
func keyOf(key []any) string {
	var b []byte
	for _, v := range key {
		switch v := v.(type) {
		case string:
			b = append(append(b, v...), 0)
		case int64:
			b = fmt.Appendf(b, "%020d\x00", v)
		default:
			panic(fmt.Sprintf("projections: a key of a %T", v))
		}
	}
	return string(b)
}

// add adds to the values of a row of sums those of another row with the same key.
func (t *table) add(values, more row) {
	for i := t.keys; i < len(values); i++ {
		switch t.columns[i].kind {
		case number:
			values[i] = values[i].(int64) + more[i].(int64)
		case decimal:
			values[i] = sum(values[i].(string), more[i].(string))
		}
	}
}

// exact holds any sum of amounts: an amount has 38 digits at most.
var exact = apd.BaseContext.WithPrecision(200)

// sum adds two decimals.
func sum(a, b string) string {
	var x, y, z apd.Decimal
	_, _, err := x.SetString(a)
	if err == nil {
		_, _, err = y.SetString(b)
	}
	if err == nil {
		_, err = exact.Add(&z, &x, &y)
	}
	if err != nil {
		panic("projections: " + err.Error()) // both were amounts
	}
	z.Reduce(&z)
	return z.Text('f')
}
