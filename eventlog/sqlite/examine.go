package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
)

// lowSpace is how many bytes should be free where the log is: the write-ahead log may grow
// to walLimit before its content moves to the main file.
const lowSpace = 2 * walLimit

var _ eventlog.Examined = (*Log)(nil)

// Examine implements [eventlog.Examined]: whether the file has a write-ahead log and the
// rules that keep others from changing it, whether the file and its folder may be written, and how much room there is. That the file is a
// log of this program has been made sure of by opening it.
func (l *Log) Examine(ctx context.Context) ([]eventlog.Finding, error) {
	r, err := l.readers.borrow(ctx)
	if err != nil {
		return nil, err
	}
	defer l.readers.giveBack(r)
	return []eventlog.Finding{
		{Check: "file", Grade: eventlog.Fine, Detail: "it is a log of this program: " + l.place.path},
		checkJournal(r.conn),
		checkRules(r.conn),
		l.place.checkAccess(),
		l.place.checkSpace(),
	}, nil
}

func checkJournal(conn *sqlite.Conn) eventlog.Finding {
	const check = "journal"
	var mode string
	err := sqlitex.ExecuteTransient(conn, "PRAGMA journal_mode", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		mode = s.ColumnText(0)
		return nil
	}})
	switch {
	case err != nil:
		return eventlog.Finding{Check: check, Grade: eventlog.Unreachable, Detail: explain(err) + ": " + err.Error(), Remedy: "try again when nothing else uses the file"}
	case mode != "wal":
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: fmt.Sprintf("the file keeps its journal as %q, not as a write-ahead log", mode),
			Remedy: "let a command of this program write to it, which sets that right, and find out what else opens the file"}
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "it has a write-ahead log"}
}

// checkRules looks for what keeps other programs from changing events.
func checkRules(conn *sqlite.Conn) eventlog.Finding {
	const check = "rules"
	missing, err := missingRules(conn)
	switch {
	case err != nil:
		return eventlog.Finding{Check: check, Grade: eventlog.Unreachable, Detail: explain(err) + ": " + err.Error(), Remedy: "try again when nothing else uses the file"}
	case len(missing) > 0:
		return eventlog.Finding{Check: check, Grade: eventlog.Risky,
			Detail: "the file has no rule against some changes of what is in it: " + strings.Join(missing, ", ") + " is missing",
			Remedy: "let a command of this program write to it, which sets that right; and unless an older version made the file, run verify, and find out who took them out"}
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "it refuses every change of what is in it"}
}

// checkAccess asks what the permissions allow. The file is not opened for that: closing it
// again would drop the locks that SQLite has on it.
func (p *place) checkAccess() eventlog.Finding {
	const check = "access"
	if onReadOnlyMount(filepath.Dir(p.path)) {
		return eventlog.Finding{Check: check, Grade: eventlog.Unreachable, Detail: "the file system is mounted read-only",
			Remedy: "find out why (the system does that when a disk fails), then make it writable again"}
	}
	for _, path := range []string{p.path, filepath.Dir(p.path)} {
		if err := writable(path); err != nil {
			return eventlog.Finding{Check: check, Grade: eventlog.Forbidden, Detail: fmt.Sprintf("%s cannot be written: %v", path, err),
				Remedy: "give the user the right to write the file and its folder, where SQLite keeps files beside it"}
		}
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "the file and its folder may be written"}
}

func (p *place) checkSpace() eventlog.Finding {
	const check = "space"
	free, err := freeSpace(filepath.Dir(p.path))
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: "not looked at on this system"}
	case err != nil:
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: "how much room there is cannot be told: " + err.Error(), Remedy: "look at the file system yourself"}
	case free < lowSpace:
		return eventlog.Finding{Check: check, Grade: eventlog.Risky, Detail: fmt.Sprintf("%d MiB are free", free>>20),
			Remedy: fmt.Sprintf("make room: the write-ahead log alone may need %d MiB", walLimit>>20)}
	}
	return eventlog.Finding{Check: check, Grade: eventlog.Fine, Detail: fmt.Sprintf("%d MiB are free", free>>20)}
}

// modeOf is the part of writable that every system has.
func modeOf(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o222 == 0 {
		return os.ErrPermission
	}
	return nil
}
