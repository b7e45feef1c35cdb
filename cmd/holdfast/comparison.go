package main

import "holdfast/projections"

// comparisonDocument is what is different between two files of a projection.
type comparisonDocument struct {
	Rows      uint64               `json:"rows"`
	Different uint64               `json:"different"`
	Columns   []string             `json:"columns,omitempty"`
	First     []differenceDocument `json:"first,omitempty"`
}

type differenceDocument struct {
	Table  string `json:"table"`
	Key    string `json:"key"`
	Column string `json:"column,omitempty"`
	Before string `json:"before"`
	After  string `json:"after"`
}

func documentOf(c *projections.Comparison) *comparisonDocument {
	if c == nil {
		return nil
	}
	d := &comparisonDocument{Rows: c.Rows, Different: c.Different, Columns: c.Columns}
	for _, f := range c.First {
		d.First = append(d.First, differenceDocument(f))
	}
	return d
}

// comparison prints what is different between two files.
func (p *page) comparison(d *comparisonDocument) {
	switch {
	case d.Different == 0 && len(d.Columns) == 0:
		p.line("  The same: %s", counted(int(d.Rows), "row"))
		return
	case d.Different > 0:
		p.line("  Different: %d of %s", d.Different, counted(int(d.Rows), "row"))
	}
	for _, column := range d.Columns {
		p.line("  Only in one of them: %s", legible(column))
	}
	for _, f := range d.First {
		what := f.Table
		if f.Column != "" {
			what += "." + f.Column
		}
		p.line("  %s of %s: %s before, %s now", what, legible(f.Key), legible(f.Before), legible(f.After))
	}
}
