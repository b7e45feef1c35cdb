package aggregate

import (
	"fmt"
	"time"

	"holdfast/events"
)

// Custody is the state of a log's custody stream: whether the log is a ledger, on which
// commands may act. Two logs that hold the same withdrawals must never both be one: each
// knows only its own claims, and the same withdrawal would be paid from both. The zero
// value is a log that was never copied.
type Custody struct {
	next   uint64
	keeper Keeper
	copy   events.CopyBegun
	at     events.CopyAdvanced
	total  uint64
	moved  events.LedgerMoved
	since  time.Time
}

// Keeper says whether a log is a ledger.
type Keeper int

const (
	// Here: the log is a ledger.
	Here Keeper = iota
	// Coming: the log is being copied into, and is no ledger yet.
	Coming
	// Gone: the ledger is another log, to which it has moved or where it has stayed.
	Gone
)

// Next returns the revision of the stream's next event.
func (c Custody) Next() uint64 { return c.next }

// Keeper returns whether the log is a ledger, and since when; the time is zero for a log
// that was never copied.
func (c Custody) Keeper() (Keeper, time.Time) { return c.keeper, c.since }

// Copy returns the copy that made the log, or is making it; it is zero where there was
// none.
func (c Custody) Copy() events.CopyBegun { return c.copy }

// Reached returns how far the copy into the log is known to have got; zero where it has
// only begun.
func (c Custody) Reached() events.CopyAdvanced { return c.at }

// Total returns how many events the copy that was completed last had.
func (c Custody) Total() uint64 { return c.total }

// Moved returns where the ledger has gone, where it has.
func (c Custody) Moved() events.LedgerMoved { return c.moved }

// Apply folds the stream's next event. An error means that the stream is damaged: the
// event can not follow those before it.
func (c Custody) Apply(r events.Recorded) (Custody, error) {
	n := c
	switch e := r.Event.(type) {
	case events.CopyBegun:
		if c.keeper != Gone && c.next > 0 {
			return c, fmt.Errorf("a copy began into a log that is a ledger, or into which another is under way")
		}
		n = Custody{keeper: Coming, copy: e}
	case events.CopyAdvanced:
		if c.keeper != Coming || e.Copy != c.copy.Copy || e.Events < c.at.Events {
			return c, fmt.Errorf("a copy advanced that is not under way, or it went back")
		}
		n.at = e
	case events.CopyCompleted:
		if c.keeper != Coming || e.Copy != c.copy.Copy {
			return c, fmt.Errorf("a copy was completed that is not under way")
		}
		n.keeper, n.total = Here, e.Events
	case events.LedgerMoved:
		if c.keeper == Gone || c.keeper == Coming && e.Copy != c.copy.Copy {
			return c, fmt.Errorf("the ledger moved from a log where it was not, and was not coming")
		}
		n.keeper, n.moved = Gone, e
	case events.LedgerKept:
		if c.keeper != Gone || e.Copy != c.moved.Copy || e.Copy == c.copy.Copy {
			return c, fmt.Errorf("the ledger was kept where it was not left for that copy")
		}
		n.keeper = Here
	default:
		return c, fmt.Errorf("%s can not be in the custody stream", r.Event.Type())
	}
	n.next = c.next + 1
	if n.keeper != c.keeper || n.next == 1 {
		n.since = r.Metadata.RecordedAt.Time()
	} else {
		n.since = c.since
	}
	return n, nil
}

// NoLedger is the cause of the refusal of every command on a log that is not a ledger:
// one that is being copied into, or one whose ledger has moved to another log.
type NoLedger struct {
	// Keeper is Coming or Gone.
	Keeper Keeper
	// Other is the log that is copied, or the one that took this one's place.
	Other string
	// Since says since when.
	Since time.Time
}

func (e *NoLedger) Error() string {
	if e.Keeper == Coming {
		return fmt.Sprintf("the log is being copied into from %s, and is no ledger until that is done; until then nothing is paid from it", events.Quote(e.Other))
	}
	return fmt.Sprintf("the ledger has moved to %s, and nothing is paid from this log any more", events.Quote(e.Other))
}

// Act returns [*NoLedger] unless the log is a ledger, on which commands may act.
func (c Custody) Act() error {
	switch c.keeper {
	case Coming:
		return &NoLedger{Keeper: Coming, Other: c.copy.From, Since: c.since}
	case Gone:
		return &NoLedger{Keeper: Gone, Other: c.moved.To, Since: c.since}
	}
	return nil
}
