package transfer

import (
	"context"
	"errors"
	"fmt"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/submissions"
)

// custody is what a log's custody stream says.
type custody struct {
	log   eventlog.Log
	state aggregate.Custody
	chain events.Chain
}

func (k *custody) read(ctx context.Context) (err error) {
	k.state, k.chain, err = submissions.Custody(ctx, k.log)
	return err
}

// record appends an event to a log's custody stream. Where another copy was first there,
// which wrote what this one was going to say or is further than it, that is as good.
func (c *copying) record(ctx context.Context, k *custody, e events.Event) error {
	chain := k.chain
	stored, recorded, err := chain.Append(c.NewID(), e, events.Metadata{RecordedAt: events.At(c.Clock()), Actor: c.Actor})
	if err != nil {
		return err
	}
	next, err := k.state.Apply(recorded)
	if err != nil {
		return fmt.Errorf("transfer: %w", err)
	}
	a := eventlog.StreamAppend{Stream: stored.Stream, At: stored.Revision, Events: []eventlog.Event{{ID: stored.ID, Type: stored.Type, Data: stored.Data, Metadata: stored.Metadata}}}
	t := target{log: k.log, pause: c.Pause}
	err = t.append(ctx, a)
	var conflict *eventlog.Conflict
	if errors.As(err, &conflict) {
		return &Busy{Reason: "another copy is under way from the source or into the target: let it end, and copy again"}
	}
	if err != nil {
		return err
	}
	k.state, k.chain = next, chain
	return nil
}

// admit decides whether the one log can be copied into the other. Nothing is written.
func (c *copying) admit(ctx context.Context) error {
	if err := c.source.read(ctx); err != nil {
		return fmt.Errorf("the source cannot be read: %w", err)
	}
	if err := c.into.read(ctx); err != nil {
		return fmt.Errorf("the target cannot be read: %w", err)
	}
	from, err := c.firstEvent(ctx, c.from.Log)
	if err != nil {
		return err
	}
	to, err := c.firstEvent(ctx, c.to.Log)
	if err != nil {
		return err
	}
	same, err := c.same(ctx, from, to)
	switch {
	case err != nil:
		return err
	case same:
		return &Refused{Reason: "the target is the source itself, or a copy of its file", Try: "name another target"}
	case from.Stream == "":
		return &Refused{Reason: "the source has no events", Try: "check its name; there is nothing to copy"}
	}
	leaving, _ := c.source.state.Keeper()
	coming, _ := c.into.state.Keeper()
	begun, moved := c.into.state.Copy(), c.source.state.Moved()
	mine := leaving == aggregate.Gone && begun.Copy == moved.Copy
	switch {
	case leaving == aggregate.Coming:
		return &Refused{Reason: "the source is being copied into itself, and is no ledger", Try: "finish that copy with a cut-over first, or copy from where it comes from: " + c.source.state.Copy().From}
	case coming == aggregate.Here && mine:
		c.report = Report{Copy: begun.Copy, Events: c.into.state.Total(), CutOver: true, Already: true}
		return nil
	case mine && coming == aggregate.Gone && c.into.state.Moved().Copy == begun.Copy:
		return &Refused{Reason: "the copy is being given up, and the source is not the ledger again yet", Try: "give it up once more, with a take-back, and then copy"}
	case leaving == aggregate.Gone && (!mine || coming == aggregate.Gone):
		// It may be a ledger further on: a target that were completed now would be a second.
		return &Refused{Reason: "the ledger has moved from the source to " + events.Quote(moved.To), Try: "copy from where it is now"}
	case coming == aggregate.Here && c.into.state.Next() > 0:
		return &Refused{Reason: "the target is a ledger, which it became by an earlier copy", Try: "name an empty target"}
	case coming == aggregate.Here && to.Stream != "":
		return &Refused{Reason: fmt.Sprintf("the target is a ledger of its own: it has stream %s", events.Quote(to.Stream)), Try: "name an empty target"}
	case coming == aggregate.Coming && begun.First != from.ID.String():
		return &Refused{Reason: "the target is being copied into from another log: " + begun.From, Try: "name an empty target"}
	case coming == aggregate.Gone:
		return c.related(ctx, to)
	}
	return nil
}

// same reports whether both are one log, under whatever names, or one is a copy of the
// other's file: event ids are random, so no two logs have the same ones for themselves.
func (c *copying) same(ctx context.Context, from, to eventlog.Recorded) (bool, error) {
	if c.source.state.Next() > 0 && c.into.state.Next() > 0 {
		var ids [2][16]byte
		for i, log := range []eventlog.Log{c.from.Log, c.to.Log} {
			for r, err := range log.ReadStream(ctx, events.CustodyStream, 0) {
				if err != nil {
					return false, err
				}
				ids[i] = r.ID
				break
			}
		}
		return ids[0] == ids[1], nil
	}
	never := c.source.state.Next() == 0 && c.into.state.Next() == 0
	return never && from.Stream != "" && from.ID == to.ID, nil
}

// related refuses a target that the ledger has left, if it was another ledger's.
func (c *copying) related(ctx context.Context, first eventlog.Recorded) error {
	if first.Stream == "" {
		return nil
	}
	for r, err := range c.from.Log.ReadStream(ctx, first.Stream, first.Revision) {
		if err != nil {
			return fmt.Errorf("the source cannot be read: %w", err)
		}
		if r.ID == first.ID {
			return nil
		}
		break
	}
	return &Refused{Reason: fmt.Sprintf("the target was another ledger: it has stream %s, which the source does not have so", events.Quote(first.Stream)), Try: "name an empty target"}
}

// firstEvent returns the first event of a log that is copied; a zero one where there is none.
func (c *copying) firstEvent(ctx context.Context, log eventlog.Log) (eventlog.Recorded, error) {
	for r, err := range history(ctx, log, eventlog.Start, 0) {
		if err != nil {
			return r, fmt.Errorf("the log cannot be read: %w", err)
		}
		return r, nil
	}
	return eventlog.Recorded{}, nil
}
