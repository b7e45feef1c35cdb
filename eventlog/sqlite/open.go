package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"

	"holdfast/eventlog"
)

const (
	// cacheWriter and cacheReader are page caches in KiB, as SQLite wants them. More
	// for the writer measured slower: SQLite goes over the whole table of cached
	// pages at every commit.
	cacheWriter = 16 << 10
	cacheReader = 8 << 10

	// walLimit is the size in bytes to which a write-ahead log that had to grow
	// beyond it is cut back, once everything in it is in the main file.
	walLimit = 128 << 20
)

// place is a file that has been looked at.
type place struct {
	// named is the path as the user gave it, path is the absolute one.
	named, path string
	// immutable says that the file can only be read without locks and without a
	// write-ahead log, because its folder is read-only.
	immutable bool
}

// fault makes an OpenError about the place.
func (p *place) fault(reason, try string, err error) error {
	return &eventlog.OpenError{Path: p.named, Reason: reason, Try: try, Err: err}
}

// outOfReach makes an OpenError about a place that cannot be used now.
func (p *place) outOfReach(reason, try string, err error) error {
	return p.fault(reason, try, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err))
}

// forbidden makes an OpenError about a place that the user's rights do not open.
func (p *place) forbidden(reason, try string, err error) error {
	return p.fault(reason, try, fmt.Errorf("%w: %w", eventlog.ErrForbidden, err))
}

// inspect finds out whether a path can be a log, without writing to it. The file is
// only ever opened by SQLite: closing another descriptor of it would drop the locks
// of every connection that this process has on it.
func inspect(named string, options *Options) (*place, error) {
	p := &place{named: named}
	if named == "" {
		return nil, p.fault("the path is empty", "name a file", nil)
	}
	var err error
	// SQLite gives names like ":memory:" a meaning; an absolute path is just a path.
	if p.path, err = filepath.Abs(named); err != nil {
		return nil, p.fault("the path cannot be made absolute", "give an absolute path", err)
	}
	// SQLite keeps the write-ahead log beside the file itself, not beside a link to it.
	if real, err := filepath.EvalSymlinks(p.path); err == nil {
		p.path = real
	}
	info, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, p.inspectMissing(options)
	case errors.Is(err, syscall.EIO):
		return nil, p.outOfReach("the disk failed", "check the disk", err)
	case err != nil:
		return nil, p.fault("the file cannot be looked at", "check the path and its permissions", err)
	case info.IsDir():
		return nil, p.fault("it is a directory", "name a file in it", nil)
	case !info.Mode().IsRegular():
		return nil, p.fault("it is not a regular file", "name a regular file", nil)
	case info.Size() == 0 && (options.ReadOnly || options.MustExist):
		return nil, p.fault("the file is empty, there is no log in it", "check the path", nil)
	case info.Size() == 0:
		return p, nil
	}
	return p, p.inspectFile(options)
}

func (p *place) inspectMissing(options *Options) error {
	if options.ReadOnly || options.MustExist {
		return p.fault("there is no such file", "check the path, or create the log first", fs.ErrNotExist)
	}
	folder, err := os.Stat(filepath.Dir(p.path))
	if err != nil {
		return p.fault("its folder cannot be used", fmt.Sprintf("create the folder %q first", filepath.Dir(p.named)), err)
	}
	if !folder.IsDir() {
		return p.fault("what should be its folder is a file", "check the path", nil)
	}
	return nil
}

// inspectFile looks into an existing file without leaving a trace of it: first past all
// locks and at the main file only, which is enough to refuse if nobody is writing to it.
// What a write-ahead log adds is read through a read-only connection, which does not even
// checkpoint.
func (p *place) inspectFile(options *Options) error {
	pending := p.hasWriteAheadLog()
	id, err := p.identify(options, true)
	pending = pending || p.hasWriteAheadLog()
	var refused error
	switch {
	case err == nil:
		refused = p.judge(id)
	case sqlite.ErrCode(err).ToPrimary() == sqlite.ResultNotADB:
		refused = p.explain(err)
	}
	// While there is a write-ahead log, pages may have been moved from it to the main
	// file during that look.
	if refused != nil && !pending {
		return refused
	}
	if err != nil || pending || options.ReadOnly {
		locked, err := p.identify(options, false)
		code := sqlite.ErrCode(err).ToPrimary()
		switch {
		case err == nil:
			id = locked
		case options.ReadOnly && !pending && (code == sqlite.ResultCantOpen || code == sqlite.ResultReadOnly):
			// A log in a folder where no shared-memory file can be made: without a
			// write-ahead log the main file alone is the whole truth.
			p.immutable = true
		case refused != nil && (code == sqlite.ResultCantOpen || code == sqlite.ResultReadOnly):
			return refused
		default:
			return p.explain(err)
		}
	}
	if err := p.judge(id); err != nil {
		return err
	}
	if id.empty() && (options.ReadOnly || options.MustExist) {
		return p.fault("it is an empty SQLite file, there is no log in it", "check the path", nil)
	}
	return nil
}

// hasWriteAheadLog reports whether commits may wait beside the main file.
func (p *place) hasWriteAheadLog() bool {
	info, err := os.Stat(p.path + "-wal")
	return err == nil && info.Size() > 0
}

func (p *place) identify(options *Options, immutable bool) (identity, error) {
	at := *p
	at.immutable = immutable
	conn, err := at.connect(options, sqlite.OpenReadOnly)
	if err != nil {
		return identity{}, err
	}
	defer conn.Close()
	return identify(conn)
}

// judge decides whether a file with this identity is a log for us. An empty database
// passes.
func (p *place) judge(id identity) error {
	switch {
	case id.empty():
		return nil
	case id.application != applicationID:
		return p.fault("it is an SQLite file of another program", "check the path; the log must have a file of its own", nil)
	case id.version > schemaVersion:
		return p.fault(fmt.Sprintf("it was written by a newer version (format %d, this program knows up to %d)", id.version, schemaVersion),
			"upgrade this program", nil)
	case id.version < schemaVersion:
		return p.fault(fmt.Sprintf("its format is %d, which no version of this program wrote", id.version), "restore the file from a backup", nil)
	default:
		return nil
	}
}

// explain turns an error of SQLite while opening into one that says what to do.
func (p *place) explain(err error) error {
	code := sqlite.ErrCode(err).ToPrimary()
	switch code {
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen, sqlite.ResultIOErr:
		// The system mounts a file system read-only when its disk failed, and then it
		// is not the user's rights that are wanting.
		if onReadOnlyMount(filepath.Dir(p.path)) {
			return p.outOfReach("its file system is mounted read-only", "find out why, then make it writable again, or open the log for reading only", err)
		}
	}
	switch code {
	case sqlite.ResultNotADB:
		return p.fault("it is not an SQLite file", "check the path; if it was a log, restore it from a backup", err)
	case sqlite.ResultCorrupt:
		return p.fault("the file is damaged", "restore it from a backup", err)
	case sqlite.ResultReadOnly:
		return p.forbidden("the file or its folder is read-only", "make both writable, or open the log for reading only", err)
	case sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultAuth:
		return p.forbidden("the file cannot be opened, or its folder is read-only", "check the permissions of both, or open the log for reading only", err)
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultProtocol:
		return p.outOfReach("another process keeps it locked", "try again, or find the process", err)
	case sqlite.ResultFull:
		return p.outOfReach("the disk is full", "free some space", err)
	case sqlite.ResultIOErr:
		return p.outOfReach("the disk failed", "check the disk and its free space", err)
	case sqlite.ResultNoMem, sqlite.ResultInterrupt:
		return p.outOfReach(explain(err), "try again", err)
	default:
		return p.fault(explain(err), "", err)
	}
}

// connect opens one connection.
func (p *place) connect(options *Options, flags sqlite.OpenFlags) (*sqlite.Conn, error) {
	path := p.path
	if p.immutable {
		path = (&url.URL{Scheme: "file", Path: p.path, RawQuery: "immutable=1"}).String()
		flags |= sqlite.OpenURI
	}
	conn, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(options.BusyTimeout)
	return conn, nil
}

// connectReader opens a connection for reading.
func (p *place) connectReader(options *Options) (*sqlite.Conn, error) {
	conn, err := p.connect(options, sqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	if err := execute(conn, fmt.Sprintf("PRAGMA query_only = ON; PRAGMA cache_size = -%d;", cacheReader)); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// connectWriter opens the connection for writing, and makes a log of an empty file.
// Any number of processes may do so at the same time.
func (p *place) connectWriter(ctx context.Context, options *Options) (*sqlite.Conn, error) {
	conn, err := p.connect(options, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, p.explain(err)
	}
	if err := p.prepareWriter(ctx, conn, options); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (p *place) prepareWriter(ctx context.Context, conn *sqlite.Conn, options *Options) error {
	// The retries below wait instead, in shorter steps than SQLite's own.
	conn.SetBusyTimeout(0)
	steps := []func() error{
		func() error {
			return execute(conn, fmt.Sprintf("PRAGMA page_size = %d; PRAGMA synchronous = FULL; PRAGMA cache_size = -%d;", pageSize, cacheWriter))
		},
		// Two processes that switch an empty file to a write-ahead log at the same
		// time get SQLITE_BUSY at once, whatever the timeout.
		func() error { return execute(conn, "PRAGMA journal_mode = WAL;") },
		func() error { return execute(conn, "BEGIN IMMEDIATE;") },
		func() error { return p.ensureSchema(conn) },
		func() error { return execute(conn, "COMMIT;") },
		// Checkpoints are the writer's own business; see checkpointer.
		func() error {
			return execute(conn, fmt.Sprintf("PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = %d;", walLimit))
		},
	}
	for _, step := range steps {
		// On an error the connection is closed, which rolls back what is left.
		if err := retry(ctx, options.BusyTimeout, step); err != nil {
			var refused *eventlog.OpenError
			if errors.As(err, &refused) {
				return err
			}
			return p.explain(err)
		}
	}
	return nil
}

// ensureSchema looks again, now that nobody else can write. It makes an empty file a log,
// and gives a log the rules that it lacks; in any other it writes what is there already, because on a file that cannot be written
// SQLite begins even a write transaction without complaint.
func (p *place) ensureSchema(conn *sqlite.Conn) error {
	id, err := identify(conn)
	if err != nil {
		return err
	}
	if err := p.judge(id); err != nil {
		return err
	}
	if id.empty() {
		return createSchema(conn)
	}
	missing, err := missingRules(conn)
	if err != nil {
		return err
	}
	if len(missing) > 0 { // an older version made the file, or somebody took them out
		return execute(conn, rules)
	}
	if err := execute(conn, fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion)); err != nil {
		return err
	}
	return execute(conn, "ROLLBACK; BEGIN;")
}

// retry repeats what fails because another process is busy, until it has taken longer
// than patience or the context has ended. It returns the last error. The pauses are
// short and uneven, so that every one of many processes gets its turn.
func retry(ctx context.Context, patience time.Duration, attempt func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := attempt()
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		pause := time.NewTimer(200*time.Microsecond + rand.N(1800*time.Microsecond))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}
