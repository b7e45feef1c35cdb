package projections

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/sync/errgroup"

	"holdfast/eventlog"
)

// ErrOtherLog is the error of a file that was made from another log than this one, or
// from a later state of it than this one, as after a restored backup. Rebuild it.
var ErrOtherLog = errors.New("projections: the file was made from another log, or from events that this one does not have; rebuild it")

// batch is some events of the log, and the steps that they are.
type batch struct {
	events []eventlog.Recorded
	steps  []*Step
}

// target is one file that is brought up to date.
type target struct {
	file    *file
	mark    mark
	changes *changes
}

// advance brings files up to date with the log: to its end, or to a position where upTo
// is not 0, or, following, for as long as the context lasts. Progress, where it is not
// nil, is told how many events of the log the last one of the files has behind it.
//
// Errors: [*Poison], [ErrOtherLog], those of the log and of the files. What was written
// before an error stays.
func advance(ctx context.Context, log eventlog.Log, files []*file, upTo eventlog.Position, follow bool, progress func(events uint64)) error {
	targets := make([]*target, len(files))
	for i, f := range files {
		m, err := f.at(ctx)
		if err == nil {
			err = continues(ctx, log, m)
		}
		if err != nil {
			return fmt.Errorf("projection %s: %w", f.projection.Name, err)
		}
		targets[i] = &target{file: f, mark: m, changes: newChanges(f.projection.tables)}
	}
	group, ctx := errgroup.WithContext(ctx)
	inbox, folded := newInbox(), make(chan batch, 1)
	events := log.ReadAll(ctx, behind(targets).position)
	if follow {
		events = log.Follow(ctx, behind(targets).position)
	}
	group.Go(func() error {
		inbox.fill(until(events, upTo))
		return nil
	})
	group.Go(func() error {
		defer close(folded)
		defer inbox.abandon()
		folder := newFolder(log)
		for {
			recorded, err := inbox.take(follow)
			if err != nil || len(recorded) == 0 {
				return err
			}
			steps, failed := folder.fold(ctx, recorded)
			select {
			case folded <- batch{recorded[:len(steps)], steps}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if failed != nil {
				return failed
			}
		}
	})
	group.Go(func() error {
		for b := range folded {
			if err := write(targets, b); err != nil {
				return err
			}
			if progress != nil {
				progress(behind(targets).events)
			}
		}
		return nil
	})
	return group.Wait()
}

// behind is the mark of the file that is furthest behind.
func behind(targets []*target) mark {
	least := targets[0].mark
	for _, t := range targets {
		if t.mark.position < least.position {
			least = t.mark
		}
	}
	return least
}

// until ends a reading behind a position, where that is not 0.
func until(events iter.Seq2[eventlog.Recorded, error], upTo eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	if upTo == 0 {
		return events
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		for e, err := range events {
			if err == nil && e.Position > upTo || !yield(e, err) {
				return
			}
		}
	}
}

// write puts a batch into every file that does not have it yet.
func write(targets []*target, b batch) error {
	var group errgroup.Group
	for _, t := range targets {
		group.Go(func() error { return t.write(b) })
	}
	return group.Wait()
}

func (t *target) write(b batch) error {
	for {
		t.changes.clear()
		next := t.mark
		for i, s := range b.steps {
			if b.events[i].Position <= t.mark.position {
				continue
			}
			next = mark{position: b.events[i].Position, id: b.events[i].ID, events: next.events + 1}
			if s != nil {
				t.file.projection.project(s, t.changes)
			}
		}
		if next == t.mark {
			return nil
		}
		reached, err := t.file.write(t.mark, next, t.changes)
		if err != nil {
			return err
		}
		t.mark = reached // by this process or by another one
	}
}

// continues checks that a log has the event that a file was made up to.
func continues(ctx context.Context, log eventlog.Log, m mark) error {
	if m.position == eventlog.Start {
		return nil
	}
	for e, err := range log.ReadAll(ctx, m.position-1) {
		if err != nil {
			return err
		}
		if e.Position == m.position && e.ID == m.id {
			return nil
		}
		break
	}
	return ErrOtherLog
}
