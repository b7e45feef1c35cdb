package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"holdfast/events"
	"holdfast/internal/shell"
)

// result prints what a command came to: on standard output, and nothing else goes
// there. The bytes depend on the result alone, so that a replay prints the same (A2).
func (c *call) result(document any, page func(*page)) error {
	if c.inJSON() {
		return c.print(string(encode(document)))
	}
	p := c.page()
	page(p)
	return c.print(p.String())
}

func (c *call) print(s string) error {
	if _, err := io.WriteString(c.stdout, s); err != nil {
		return &printError{err}
	}
	return nil
}

// printError is a result that could not be printed. What the command did, it did.
type printError struct{ error }

func (e *printError) Unwrap() error { return e.error }

// note tells the user something beside the result.
func (c *call) note(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if !c.inJSON() {
		message += "."
	}
	c.tell(message)
}

// tell is note, for what is not a sentence.
func (c *call) tell(message string) {
	if c.inJSON() {
		c.stderr.Write(encode(noteDocument{Note: message}))
		return
	}
	fmt.Fprintln(c.stderr, message)
}

type noteDocument struct {
	Note string `json:"note"`
	Try  string `json:"try,omitempty"`
}

// warn tells the user loudly of what they must not miss beside the result, and where to
// look further.
func (c *call) warn(message string, try ...string) {
	if c.inJSON() {
		c.stderr.Write(encode(noteDocument{Note: "Warning: " + message, Try: shell.Join(try...)}))
		return
	}
	fmt.Fprintf(c.stderr, "%s %s.\nTry: %s\n", c.paint(c.stderr).bad("Warning:"), message, shell.Join(try...))
}

// encode writes a document as one line of JSON.
func encode(document any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		panic("holdfast: a document of strings and numbers could not be encoded: " + err.Error())
	}
	return b.Bytes()
}

// page is a result for a person: lines, blocks of facts, tables.
type page struct {
	strings.Builder
	now   time.Time
	paint paint
	facts [][2]string
}

func (c *call) page() *page { return &page{now: c.now(), paint: c.paint(c.stdout)} }

// String returns the whole page.
func (p *page) String() string {
	p.flush()
	return p.Builder.String()
}

// fact adds a named fact to the block; one without a value is left out.
func (p *page) fact(name, value string) {
	if value != "" {
		p.facts = append(p.facts, [2]string{name + ":", value})
	}
}

// flush ends a block of facts. Its values stand in one column.
func (p *page) flush() {
	width := 0
	for _, fact := range p.facts {
		width = max(width, len(fact[0]))
	}
	for _, fact := range p.facts {
		fmt.Fprintf(&p.Builder, "%-*s %s\n", width, fact[0], fact[1])
	}
	p.facts = nil
}

func (p *page) line(format string, args ...any) {
	p.flush()
	fmt.Fprintf(&p.Builder, format+"\n", args...)
}

// table writes rows under a heading, in columns.
func (p *page) table(heading []string, rows [][]string) {
	p.flush()
	table := tabwriter.NewWriter(&p.Builder, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	table.Flush()
}

// since returns an instant with its age, for what changes as time goes by anyway.
func (p *page) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", stamp(t), age(p.now.Sub(t)))
}

// until returns an instant that may be still to come.
func (p *page) until(t time.Time) string {
	if left := t.Sub(p.now); left > 0 {
		return fmt.Sprintf("%s (in %s)", stamp(t), remaining(left))
	}
	return p.since(t)
}

// stamp returns an instant as it is written everywhere: RFC 3339, UTC, microseconds. The
// zero instant is "".
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return events.At(t).String()
}

// age returns a duration for a person, in its largest unit.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return "less than 1s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// remaining returns how long something still takes, rounded up: who comes back after it
// is not early.
func remaining(d time.Duration) string {
	return ((max(d, 0) + time.Second - 1) / time.Second * time.Second).String()
}

// paint colours words where the stream is a terminal that wants colour. No meaning is
// in the colour alone.
type paint bool

func (c *call) paint(stream any) paint {
	noColour, _ := c.env("NO_COLOR")
	kind, _ := c.env("TERM")
	return paint(c.terminal(stream) && noColour == "" && kind != "dumb")
}

func (p paint) good(s string) string { return p.wrap("32", s) }
func (p paint) bad(s string) string  { return p.wrap("31", s) }
func (p paint) bold(s string) string { return p.wrap("1", s) }
func (p paint) dim(s string) string  { return p.wrap("2", s) }

func (p paint) wrap(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
