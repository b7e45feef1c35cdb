package transfer

import (
	"context"
	"errors"
	"fmt"

	"holdfast/aggregate"
	"holdfast/events"
)

// TakeBack gives a copy up that was not completed: the target will not become a ledger by
// it, and the source is the ledger again, if it was sealed for that copy. It can be run
// again where it was cut off, and a later Copy may begin anew.
//
// The target is told first, so that of a TakeBack and a Copy that completes at the same
// moment only one goes through. It returns [*Refused] where there is nothing to give up, or
// the target is the ledger already; [*Busy], and the errors of the logs.
func TakeBack(ctx context.Context, from, to Place, o *Options) (Report, error) {
	c := newCopying(from, to, o)
	for _, k := range []struct {
		name string
		*custody
	}{{"source", &c.source}, {"target", &c.into}} {
		if err := k.read(ctx); err != nil {
			return c.report, fmt.Errorf("the %s cannot be read: %w", k.name, err)
		}
	}
	leaving, _ := c.source.state.Keeper()
	coming, _ := c.into.state.Keeper()
	begun, moved := c.into.state.Copy(), c.source.state.Moved()
	first, err := c.firstEvent(ctx, from.Log)
	if err != nil {
		return c.report, err
	}
	last, err := c.firstEvent(ctx, to.Log)
	if err != nil {
		return c.report, err
	}
	if same, err := c.same(ctx, first, last); err != nil || same {
		return c.report, errors.Join(err, &Refused{Reason: "the target is the source itself, or a copy of its file", Try: "name another target"})
	}
	switch {
	case leaving == aggregate.Here && begun.First != first.ID.String(), begun.Copy == "" || leaving == aggregate.Coming:
		return c.report, &Refused{Reason: "there is no copy into the target that could be given up", Try: "check the names of both"}
	case leaving == aggregate.Gone && moved.Copy != begun.Copy:
		return c.report, &Refused{Reason: "the source was left for another log than the target: " + moved.To, Try: "name that one as the target"}
	case coming == aggregate.Here:
		return c.report, &Refused{Reason: "the copy was completed, and the target is the ledger", Try: "copy back from there, with a cut-over"}
	case coming == aggregate.Gone && c.into.state.Moved().Copy != begun.Copy:
		return c.report, &Refused{Reason: "the ledger was in the target, and has left it: " + c.into.state.Moved().To, Try: "copy from there"}
	}
	c.report.Copy = begun.Copy
	if coming == aggregate.Coming {
		if err := c.record(ctx, &c.into, events.LedgerMoved{Copy: begun.Copy, To: c.from.Name}); err != nil {
			return c.report, err
		}
	}
	if leaving == aggregate.Gone {
		return c.report, c.record(ctx, &c.source, events.LedgerKept{Copy: begun.Copy})
	}
	return c.report, nil
}
