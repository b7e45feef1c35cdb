package simulated

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"holdfast/events"
)

// book appends to the file. It holds no state of the file between two appends, because
// other processes append to it as well.
type book struct {
	path string
	now  func() time.Time
	// mu keeps all but one goroutine from waiting for the file's lock, where each would
	// hold a thread.
	mu sync.Mutex
}

// create makes an empty book where there is no file, and checks that what is there is a
// book that can be appended to.
func (b *book) create() error {
	f, err := openBook(b.path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := b.inspect(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("simulated: the book cannot be flushed: %w", err)
	}
	// The name of a new file is on the disk once its directory is.
	dir, err := os.Open(filepath.Dir(b.path))
	if err != nil {
		return fmt.Errorf("simulated: the directory of the book cannot be flushed: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("simulated: the directory of the book cannot be flushed: %w", err)
	}
	return nil
}

// inspect returns an error when the file is somebody else's: when its first line, or
// what follows its last newline, is nothing a book has.
func (b *book) inspect(f *os.File) error {
	if err := lock(f, syscall.LOCK_SH); err != nil {
		return err
	}
	defer unlock(f)
	end, _, err := tail(f)
	if err != nil {
		return err
	}
	for _, err := range entries(f.Name(), io.NewSectionReader(f, 0, end)) {
		return err
	}
	return nil
}

// append books the draft and returns it as it was booked, at the time it was. With
// honourToken, a draft whose token has paid already is not booked; the entry that paid
// is returned instead. When the error is not nil, the entry may be in the book or not.
func (b *book) append(draft Entry, honourToken bool) (Entry, error) {
	// Not O_CREATE: if somebody took the book away, a new one would hide what left.
	f, err := openBook(b.path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	booked, err := b.write(f, draft, honourToken)
	if err != nil {
		return Entry{}, err
	}
	// Outside the lock, so that the flushes of many senders can be one. An entry that
	// was already there is flushed as well: who wrote it may have died before doing so.
	if err := f.Sync(); err != nil {
		return Entry{}, fmt.Errorf("simulated: the book cannot be flushed: %w", err)
	}
	return booked, nil
}

// write appends the draft's line under the file's lock, behind the last whole line.
func (b *book) write(f *os.File, draft Entry, honourToken bool) (Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := lock(f, syscall.LOCK_EX); err != nil {
		return Entry{}, err
	}
	defer unlock(f)

	end, torn, err := tail(f)
	if err != nil {
		return Entry{}, err
	}
	if honourToken && draft.Token != "" {
		paid, found, err := paidBy(f, end, draft.Token)
		switch {
		case err != nil:
			return Entry{}, err
		case found && !paid.samePayment(draft):
			return Entry{}, fmt.Errorf("simulated: token %s has paid another withdrawal, or with other details; nothing left", events.Quote(draft.Token))
		case found:
			return paid, nil
		}
	}
	draft.Time = b.now().UTC().Truncate(time.Microsecond)
	encoded, err := encodeEntry(draft)
	if err != nil {
		return Entry{}, fmt.Errorf("simulated: the payment cannot be booked: %w", err)
	}
	if torn {
		if err := f.Truncate(end); err != nil {
			return Entry{}, fmt.Errorf("simulated: the torn end of the book cannot be removed: %w", err)
		}
	}
	if _, err := f.Write(encoded); err != nil {
		err = fmt.Errorf("simulated: the book cannot be written: %w", err)
		return Entry{}, errors.Join(err, f.Truncate(end))
	}
	return draft, nil
}

// paidBy returns the first payment that left with the token, of a file whose whole lines
// end at end.
func paidBy(f *os.File, end int64, token string) (Entry, bool, error) {
	for e, err := range entries(f.Name(), io.NewSectionReader(f, 0, end)) {
		if err != nil {
			return Entry{}, false, err
		}
		if !e.Refused && e.Token == token {
			return e, true, nil
		}
	}
	return Entry{}, false, nil
}

// openBook opens the file, which must be a regular one.
func openBook(path string, flag int) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("simulated: book %s is a directory", path)
	} else if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("simulated: book %s is not a regular file", path)
	}
	f, err := os.OpenFile(path, flag, 0o644)
	if err != nil {
		return nil, fmt.Errorf("simulated: the book cannot be opened: %w", err)
	}
	return f, nil
}

// tail returns where the whole lines of the file end, behind its last newline, and
// whether the torn start of a line follows. Anything else that follows is a *Damaged
// error. The caller holds the file's lock.
func tail(f *os.File) (end int64, torn bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, false, fmt.Errorf("simulated: the book cannot be read: %w", err)
	}
	last := make([]byte, min(info.Size(), MaxLine))
	start := info.Size() - int64(len(last))
	if _, err := f.ReadAt(last, start); err != nil {
		return 0, false, fmt.Errorf("simulated: the book cannot be read: %w", err)
	}
	newline := bytes.LastIndexByte(last, '\n')
	if newline < 0 && start > 0 {
		return 0, false, &Damaged{Path: f.Name(), Reason: fmt.Sprintf("it is longer than %d bytes", MaxLine)}
	}
	rest := last[newline+1:]
	if n := min(len(rest), len(lineStart)); string(rest[:n]) != lineStart[:n] {
		return 0, false, &Damaged{Path: f.Name(), Reason: "it is not the start of an entry"}
	}
	return start + int64(newline+1), len(rest) > 0, nil
}

// lock waits for the advisory lock of the open file, against every other opening of it
// in any process. It is let go by unlock, by closing the file and by the death of the
// process.
func lock(f *os.File, how int) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), how); {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("simulated: book %s cannot be locked: %w", f.Name(), err)
		}
	}
}

// unlock lets go of the lock. An error is of no use to anybody: closing the file, which
// always follows, lets go as well.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
