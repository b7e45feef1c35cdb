package projections

import (
	"context"
	"errors"
	"fmt"
	"os"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
)

// Listed is one file of a projection.
type Listed struct {
	Projection string
	Version    int
	File       string
	// Live says that it is the one that is read; Known that this build knows the version,
	// and so how far the file is.
	Live, Known bool
	Position    eventlog.Position
	Events      uint64
	Bytes       int64
}

// List returns the files that there are, by their names. It changes nothing.
func (s *Set) List(ctx context.Context) ([]Listed, error) {
	places, err := s.dir.places()
	if err != nil {
		return nil, fmt.Errorf("projections: %w", err)
	}
	var list []Listed
	for _, at := range places {
		l := Listed{Projection: at.name, Version: at.version, File: at.file()}
		info, err := os.Stat(s.dir.path(l.File))
		if err != nil {
			return nil, fmt.Errorf("projections: %w", err)
		}
		l.Bytes = info.Size()
		if p, ok := Find(at.name); ok && p.Version == at.version {
			f, err := s.file(p, at)
			if err != nil {
				return nil, err
			}
			m, err := f.at(ctx)
			if err != nil {
				return nil, err
			}
			live, found, err := s.dir.live(p)
			if err != nil {
				return nil, err
			}
			l.Known, l.Live, l.Position, l.Events = true, found && live == at, m.position, m.events
		}
		list = append(list, l)
	}
	return list, nil
}

// ErrNothingToCompare is the error of Diff where there is no other file.
var ErrNothingToCompare = errors.New("projections: there is no other file to compare the live one with")

// Diff compares the live file of a projection with another: one that is being built, or
// else the one that was live before, or else one of another version. It returns the names
// of the older and the newer of the two, and what is different in the newer one. Files of
// this version are brought to the same position first; one of another version is taken as
// it is. Errors: ErrNothingToCompare, and those of Rebuild.
func (s *Set) Diff(ctx context.Context, p *Projection) (older, newer string, c *Comparison, err error) {
	live, found, err := s.dir.live(p)
	if err != nil {
		return "", "", nil, err
	}
	other, known, err := s.other(p, live)
	if err == nil && (!found || other == (place{})) {
		err = ErrNothingToCompare
	}
	if err != nil {
		return "", "", nil, err
	}
	first, second := other, live
	if known && other.generation > live.generation || other.version > live.version {
		first, second = live, other
	}
	if !known {
		c, err = s.compareFiles(ctx, first, second)
		return first.file(), second.file(), c, err
	}
	a, err := s.file(p, first)
	if err != nil {
		return "", "", nil, err
	}
	b, err := s.file(p, second)
	if err != nil {
		return "", "", nil, err
	}
	if err = advance(ctx, s.log, []*file{b}, 0, false, nil); err == nil {
		c, err = s.compareAt(ctx, a, b)
	}
	return first.file(), second.file(), c, err
}

// other is the file to compare with: the newest one of this version that is not live, or
// else of another one. Known says that it is of this version.
func (s *Set) other(p *Projection, live place) (other place, known bool, err error) {
	places, err := s.dir.places()
	for _, at := range places {
		same := at.version == p.Version
		switch {
		case at.name != p.Name || at == live:
		case other == (place{}) || same && !known:
			other, known = at, same
		case same == known && (at.version > other.version || at.version == other.version && at.generation > other.generation):
			other = at
		}
	}
	return other, known, err
}

// compareFiles compares two files as they are.
func (s *Set) compareFiles(ctx context.Context, older, newer place) (c *Comparison, err error) {
	before, err := connect(s.dir.path(older.file()), sqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	defer before.Close()
	after, err := connect(s.dir.path(newer.file()), sqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	defer after.Close()
	return compare(ctx, before, after)
}
