package transfer

import (
	"fmt"

	"holdfast/audit"
	"holdfast/events"
)

// Refused is returned by Copy for two logs of which the one cannot be copied into the
// other. Nothing of the source was written to the target.
type Refused struct {
	// Reason is a full clause that says what is wrong.
	Reason string
	// Try says what to do about it, as an instruction.
	Try string
}

func (e *Refused) Error() string { return "transfer: " + e.Reason }

// Differs is returned by Copy when the target holds what the source does not, or does not
// hold what it does. The target is no ledger then, and stays none.
type Differs struct {
	// Stream and Revision say where.
	Stream   string
	Revision uint64
	// Reason is a full clause that says what was found.
	Reason string
}

func (e *Differs) Error() string {
	return fmt.Sprintf("transfer: stream %s, revision %d: %s", events.Quote(e.Stream), e.Revision, e.Reason)
}

// Unsound is returned by Copy when one of the logs is not what a log must be.
type Unsound struct {
	// Target says that it is the target; otherwise it is the source, and nothing was
	// written to the target.
	Target bool
	// Findings has at least one finding.
	Findings []audit.Finding
}

func (e *Unsound) Error() string {
	which, first := "source", e.Findings[0]
	if e.Target {
		which = "target"
	}
	return fmt.Sprintf("transfer: the %s is damaged (%d findings): %s: stream %s, revision %d: %s",
		which, len(e.Findings), first.Code, events.Quote(first.Stream), first.Revision, first.Reason)
}

// Busy is returned by Copy when the ledger cannot be moved now, because something is still
// at it. Copying again later goes on from here.
type Busy struct {
	// Reason is a full clause that says who.
	Reason string
	// Sealed says that the source is no ledger any more, so that nothing is paid from
	// either log until the copy has been completed.
	Sealed bool
}

func (e *Busy) Error() string { return "transfer: " + e.Reason }
