package projections

import (
	"context"
	"errors"
	"fmt"
	"os"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
)

// Rebuilt is what a rebuild came to.
type Rebuilt struct {
	Projection string
	Version    int
	// File is the file that is live now, Old the one that was; empty where there was none.
	File, Old string
	Position  eventlog.Position
	Events    uint64
	// Comparison is with the file that was live. It is nil when there was none, or when it
	// could not be brought to the same position; Uncompared then says why.
	Comparison *Comparison
	Uncompared error
}

// Rebuild makes the rows of a projection again from the whole log, in a file beside the
// live one, while readers read that one and commands go on. It compares the two at one
// position of the log, and then makes the new one live, at once and never at an earlier
// position than readers have seen (D6). The old file stays until [Set.DropOld].
//
// A rebuild that was interrupted goes on where it was. An error leaves the old file live:
// [*Poison], and those of the log and of the files. Progress, where it is not nil, is told
// how many events of the log are done.
func (s *Set) Rebuild(ctx context.Context, p *Projection, progress func(events uint64)) (Rebuilt, error) {
	live, had, err := s.dir.live(p)
	if err != nil {
		return Rebuilt{}, err
	}
	next, found, err := s.dir.newest(p)
	if err != nil {
		return Rebuilt{}, fmt.Errorf("projection %s: %w", p.Name, err)
	}
	if !found || next.generation <= live.generation {
		next.generation = max(next.generation, live.generation) + 1
		if err := s.dir.add(p, next); err != nil {
			return Rebuilt{}, fmt.Errorf("projection %s: %w", p.Name, err)
		}
	}
	done := Rebuilt{Projection: p.Name, Version: p.Version, File: next.file()}
	built, err := s.build(ctx, p, next, progress)
	if err != nil {
		return done, err
	}
	if !had {
		return s.switchTo(ctx, done, built, next)
	}
	done.Old = live.file()
	old, err := s.file(p, live)
	if err == nil {
		done.Comparison, err = s.compareAt(ctx, old, built)
	}
	done.Uncompared = err
	if err := ctx.Err(); err != nil {
		return done, context.Cause(ctx)
	}
	if old == nil {
		return s.switchTo(ctx, done, built, next)
	}
	// Nobody moves the old file on while readers go over to the new one.
	err = old.frozen(func() (err error) {
		done, err = s.switchTo(ctx, done, built, next)
		return err
	})
	return done, err
}

// build brings a new file to the end of the log. A file that was begun on another log is
// thrown away.
func (s *Set) build(ctx context.Context, p *Projection, at place, progress func(events uint64)) (*file, error) {
	for first := true; ; first = false {
		f, err := s.file(p, at)
		if err != nil {
			return nil, err
		}
		err = advance(ctx, s.log, []*file{f}, 0, false, progress)
		if err == nil || !first || !errors.Is(err, ErrOtherLog) {
			return f, err
		}
		if err := errors.Join(s.forget(at), remove(s.dir.path(at.file())), s.dir.add(p, at)); err != nil {
			return nil, err
		}
	}
}

// switchTo makes a file live, at the end of the log.
func (s *Set) switchTo(ctx context.Context, done Rebuilt, built *file, at place) (Rebuilt, error) {
	if err := advance(ctx, s.log, []*file{built}, 0, false, nil); err != nil {
		return done, err
	}
	m, err := built.at(ctx)
	if err != nil {
		return done, err
	}
	done.Position, done.Events = m.position, m.events
	if err := s.dir.goLive(at); err != nil {
		return done, fmt.Errorf("projection %s: %w", done.Projection, err)
	}
	return done, nil
}

// compareAt compares two files at the same position. It brings the old one to the end of
// the log, and then the new one to where the old one is.
func (s *Set) compareAt(ctx context.Context, old, built *file) (c *Comparison, err error) {
	if err := advance(ctx, s.log, []*file{old}, 0, false, nil); err != nil {
		return nil, err
	}
	err = old.read(ctx, func(before *sqlite.Conn, at mark) error {
		if at.position > eventlog.Start {
			if err := advance(ctx, s.log, []*file{built}, at.position, false, nil); err != nil {
				return err
			}
		}
		return built.read(ctx, func(after *sqlite.Conn, now mark) error {
			if now != at {
				return fmt.Errorf("the files are at positions %d and %d", at.position, now.position)
			}
			c, err = compare(ctx, before, after)
			return err
		})
	})
	return c, err
}

// frozen does something while nobody can write the file. Readers go on.
func (f *file) frozen(do func() error) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end, err := sqlitex.ImmediateTransaction(f.writer)
	if err != nil {
		return fmt.Errorf("projection %s: %w", f.projection.Name, err)
	}
	defer end(&err)
	return do()
}

// forget closes a file.
func (s *Set) forget(at place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[at.file()]
	delete(s.files, at.file())
	if f == nil {
		return nil
	}
	return f.close()
}

// Verify makes the rows of a projection again in a file that is thrown away afterwards,
// and compares the live one with it. Errors as for Rebuild.
func (s *Set) Verify(ctx context.Context, p *Projection, progress func(events uint64)) (*Comparison, error) {
	live, err := s.live(ctx, p)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(string(s.dir), "verify-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("projection %s: %w", p.Name, err)
	}
	defer os.RemoveAll(folder)
	path := directory(folder).path("rows.db")
	if err := create(p, path); err != nil {
		return nil, fmt.Errorf("projection %s: %w", p.Name, err)
	}
	again, err := open(p, path)
	if err != nil {
		return nil, err
	}
	c, err := s.compareWith(ctx, live, again, progress)
	return c, errors.Join(err, again.close())
}

func (s *Set) compareWith(ctx context.Context, live, again *file, progress func(events uint64)) (*Comparison, error) {
	if err := advance(ctx, s.log, []*file{again}, 0, false, progress); err != nil {
		return nil, err
	}
	return s.compareAt(ctx, live, again)
}

// DropOld deletes the files of a projection that are older than the live one, and returns
// their names. Files of other versions are left alone, unless others is true: then those
// of older versions go as well.
func (s *Set) DropOld(p *Projection, others bool) ([]string, error) {
	live, found, err := s.dir.live(p)
	if err != nil || !found {
		return nil, err
	}
	places, err := s.dir.places()
	if err != nil {
		return nil, fmt.Errorf("projection %s: %w", p.Name, err)
	}
	var dropped []string
	for _, at := range places {
		older := at.version == live.version && at.generation < live.generation || others && at.version < live.version
		if at.name != p.Name || !older {
			continue
		}
		if err := errors.Join(s.forget(at), remove(s.dir.path(at.file()))); err != nil {
			return dropped, fmt.Errorf("projection %s: %w", p.Name, err)
		}
		dropped = append(dropped, at.file())
		if at.version < live.version {
			if err := remove(s.dir.path(at.live())); err != nil {
				return dropped, fmt.Errorf("projection %s: %w", p.Name, err)
			}
		}
	}
	return dropped, nil
}
