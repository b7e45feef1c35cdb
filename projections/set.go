package projections

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"holdfast/eventlog"
)

// Options are what may be said beside the directory and the log. A nil *Options is fine.
type Options struct {
	// Clock tells the time, by which an attempt is over; time.Now by default.
	Clock func() time.Time
}

// Set is all projections of one log, in one directory. It is safe for concurrent use, and
// any number of processes may have one on the same directory.
type Set struct {
	dir   directory
	log   eventlog.Log
	clock func() time.Time

	mu    sync.Mutex
	files map[string]*file // that are open, by their names
}

// Open returns the projections of a log in a directory, which it makes if need be. It
// does not read the log: a projection that was never built is built by the first call
// that needs it.
func Open(dir string, log eventlog.Log, o *Options) (*Set, error) {
	if o == nil {
		o = &Options{}
	}
	s := &Set{dir: directory(dir), log: log, clock: o.Clock, files: map[string]*file{}}
	if s.clock == nil {
		s.clock = time.Now
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("projections: %w", err)
	}
	return s, nil
}

// Close closes all files. Nothing may use the set any more.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for name, f := range s.files {
		failed = errors.Join(failed, f.close())
		delete(s.files, name)
	}
	return failed
}

// file returns an open file.
func (s *Set) file(p *Projection, at place) (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[at.file()]; f != nil {
		return f, nil
	}
	f, err := open(p, s.dir.path(at.file()))
	if err != nil {
		return nil, err
	}
	s.files[at.file()] = f
	return f, nil
}

// live returns the live file of a projection, which it builds when there is none.
func (s *Set) live(ctx context.Context, p *Projection) (*file, error) {
	at, found, err := s.dir.live(p)
	if err != nil {
		return nil, err
	}
	if !found {
		if _, err := s.Rebuild(ctx, p, nil); err != nil {
			return nil, err
		}
		if at, found, err = s.dir.live(p); err != nil || !found {
			return nil, fmt.Errorf("projection %s: it was built and is not there: %w", p.Name, err)
		}
	}
	return s.file(p, at)
}

// CatchUp brings all projections to the end of the log, and builds those that there are
// none of. Errors: [*Poison], [ErrOtherLog], those of the log and of the files.
func (s *Set) CatchUp(ctx context.Context) error {
	files, err := s.all(ctx)
	if err != nil {
		return err
	}
	return advance(ctx, s.log, files, 0, false, nil)
}

// Run keeps all projections up to date until the context ends, whose cause it then
// returns; or until an error as of CatchUp. It goes over to a file that a rebuild, here or
// in another process, has made live, within a second.
func (s *Set) Run(ctx context.Context) error {
	for {
		files, err := s.all(ctx)
		if err != nil {
			return err
		}
		following, stop := context.WithCancelCause(ctx)
		var watching sync.WaitGroup
		watching.Go(func() { s.watch(following, files, stop) })
		err = advance(following, s.log, files, 0, true, nil)
		stop(nil)
		watching.Wait()
		if !errors.Is(err, errSwitched) {
			return err
		}
	}
}

// errSwitched ends the following of files that are not the live ones any more.
var errSwitched = errors.New("projections: another file is live")

// watch stops the following once other files are live.
func (s *Set) watch(ctx context.Context, files []*file, stop context.CancelCauseFunc) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		for _, f := range files {
			if at, found, err := s.dir.live(f.projection); err == nil && found && s.dir.path(at.file()) != f.path {
				stop(errSwitched)
				return
			}
		}
	}
}

func (s *Set) all(ctx context.Context) ([]*file, error) {
	var files []*file
	for _, p := range All() {
		f, err := s.live(ctx, p)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
