package events

import "errors"

// CustodyStream is the stream that says whether the log is a ledger: whether commands may
// act on it. It belongs to the log itself, and is no part of what a copy takes along. A
// log that was never copied has none, and is a ledger.
const CustodyStream = "custody"

// MaxPlace is the longest name of a place in an event of the custody stream, in bytes.
const MaxPlace = 1024

// CopyBegun says that the log is being copied into, and is no ledger until CopyCompleted.
type CopyBegun struct {
	// Copy is the copy's id.
	Copy string `json:"copy"`
	// From is the log that is copied, as it may be shown to a person.
	From string `json:"from"`
	// First is the id of the first event that is copied: another log has another one.
	First string `json:"first"`
}

// CopyAdvanced says that every event of the source up to a position is in the log.
type CopyAdvanced struct {
	Copy string `json:"copy"`
	// Position is the position in the source.
	Position uint64 `json:"position"`
	// Events is how many events of the source that is.
	Events uint64 `json:"events"`
}

// CopyCompleted says that the log holds what its source held, and is a ledger from now on.
type CopyCompleted struct {
	Copy   string `json:"copy"`
	Events uint64 `json:"events"`
}

// LedgerMoved says that the log is no ledger any more, or will not become one: another one
// is in its place.
type LedgerMoved struct {
	Copy string `json:"copy"`
	// To is the log that took its place, as it may be shown to a person.
	To string `json:"to"`
}

// LedgerKept says that the log is the ledger again: the copy that it was left for was given
// up before it was completed.
type LedgerKept struct {
	Copy string `json:"copy"`
}

func (CopyBegun) Type() string     { return "CopyBegun" }
func (CopyAdvanced) Type() string  { return "CopyAdvanced" }
func (CopyCompleted) Type() string { return "CopyCompleted" }
func (LedgerMoved) Type() string   { return "LedgerMoved" }
func (LedgerKept) Type() string    { return "LedgerKept" }

func (e CopyBegun) validate() error {
	return errors.Join(validateVisible("copy", e.Copy, MaxReference), validateText("from", e.From, MaxPlace), validateVisible("first", e.First, MaxReference))
}

func (e CopyAdvanced) validate() error {
	return errors.Join(validateVisible("copy", e.Copy, MaxReference), check(e.Events > 0, "events must be more than none"))
}

func (e CopyCompleted) validate() error { return validateVisible("copy", e.Copy, MaxReference) }

func (e LedgerMoved) validate() error {
	return errors.Join(validateVisible("copy", e.Copy, MaxReference), validateText("to", e.To, MaxPlace))
}

func (e LedgerKept) validate() error { return validateVisible("copy", e.Copy, MaxReference) }

func (e *CopyBegun) fields(o *object) {
	text(o, "copy", &e.Copy)
	text(o, "from", &e.From)
	text(o, "first", &e.First)
}

func (e *CopyAdvanced) fields(o *object) {
	text(o, "copy", &e.Copy)
	number(o, "position", &e.Position)
	number(o, "events", &e.Events)
}

func (e *CopyCompleted) fields(o *object) {
	text(o, "copy", &e.Copy)
	number(o, "events", &e.Events)
}

func (e *LedgerMoved) fields(o *object) {
	text(o, "copy", &e.Copy)
	text(o, "to", &e.To)
}

func (e *LedgerKept) fields(o *object) { text(o, "copy", &e.Copy) }
