package sqlite

import (
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
)

// Options are the choices one has when opening a log. The zero value is fine, and so
// is nil.
type Options struct {
	// ReadOnly opens the log for reading: nothing is ever written, and Append
	// returns [eventlog.ErrReadOnly]. The file must exist.
	ReadOnly bool

	// MustExist refuses to create the file.
	MustExist bool

	// BusyTimeout is how long an append waits for another process to finish
	// writing, before it gives up with [eventlog.ErrNotExecuted]. 0 means 5 s.
	BusyTimeout time.Duration

	// PollInterval is how often a follower looks for what other processes have
	// committed. What this process commits wakes it at once. 0 means 50 ms.
	PollInterval time.Duration

	// Readers is the number of connections for reading, at most 64. 0 means 4.
	Readers int

	// steps lets tests of this package step into a write transaction.
	steps steps
}

// steps are called by the writer at places where a test wants to hold it, to look, or to
// make it fail. Those that are nil are left out.
type steps struct {
	beforeBegin, beforeCommit func(*sqlite.Conn) error
}

func step(f func(*sqlite.Conn) error, conn *sqlite.Conn) error {
	if f == nil {
		return nil
	}
	return f(conn)
}

const (
	defaultBusyTimeout  = 5 * time.Second
	defaultPollInterval = 50 * time.Millisecond
	defaultReaders      = 4
	maxReaders          = 64
)

// filled returns the options with the defaults in place, or an error that names the
// option that is out of bounds.
func (o *Options) filled() (Options, error) {
	var filled Options
	if o != nil {
		filled = *o
	}
	switch {
	case filled.BusyTimeout < 0:
		return Options{}, fmt.Errorf("sqlite: option BusyTimeout is negative: %v", filled.BusyTimeout)
	case filled.PollInterval < 0:
		return Options{}, fmt.Errorf("sqlite: option PollInterval is negative: %v", filled.PollInterval)
	case filled.Readers < 0 || filled.Readers > maxReaders:
		return Options{}, fmt.Errorf("sqlite: option Readers is %d, not in 0 to %d", filled.Readers, maxReaders)
	}
	if filled.BusyTimeout == 0 {
		filled.BusyTimeout = defaultBusyTimeout
	}
	if filled.PollInterval == 0 {
		filled.PollInterval = defaultPollInterval
	}
	if filled.Readers == 0 {
		filled.Readers = defaultReaders
	}
	return filled, nil
}
