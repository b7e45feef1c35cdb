package simulated

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"syscall"

	"holdfast/events"
)

// Damaged is returned when a file is not a book, or has a line that no book has.
type Damaged struct {
	Path string
	// Line is the number of the line, from 1, or 0 when it is the last one and has no
	// newline.
	Line int
	// Reason is a full clause that says what is wrong with the line.
	Reason string
}

func (d *Damaged) Error() string {
	where := fmt.Sprintf("line %d", d.Line)
	if d.Line == 0 {
		where = "the unfinished last line"
	}
	return fmt.Sprintf("simulated: %s is not a sound book: %s: %s", d.Path, where, d.Reason)
}

// Entries reads the book at path, payments and refusals, oldest first, as it is when the
// iteration starts. It takes one line at a time into memory, and holds no lock while the
// caller has an entry: payments may be sent from within the loop. It ends with the first
// error: [*Damaged] for a line that no book has, or one that says why the file cannot be
// read (fs.ErrNotExist when there is none).
func Entries(path string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		f, end, err := snapshot(path)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer f.Close()
		entries(path, io.NewSectionReader(f, 0, end))(yield)
	}
}

// Payments is Entries without the refusals: what left.
func Payments(path string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range Entries(path) {
			if err == nil && e.Refused {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Count returns how many payments left for each withdrawal of the book at path. More
// than one is money lost. Its errors are those of Entries.
func Count(path string) (map[events.WithdrawalID]int, error) {
	counts := make(map[events.WithdrawalID]int)
	for e, err := range Payments(path) {
		if err != nil {
			return nil, err
		}
		counts[e.Withdrawal]++
	}
	return counts, nil
}

// snapshot opens the book and returns where its whole lines end now. Those bytes never
// change again (an append only ever removes what is behind them), so that they can be
// read without the lock.
func snapshot(path string) (*os.File, int64, error) {
	f, err := openBook(path, os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	if err := lock(f, syscall.LOCK_SH); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	end, _, err := tail(f)
	unlock(f)
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, end, nil
}

// entries decodes whole lines, and ends with the first error.
func entries(path string, r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines := bufio.NewReaderSize(r, MaxLine)
		for n := 1; ; n++ {
			b, err := lines.ReadSlice('\n')
			switch {
			case err == io.EOF && len(b) == 0:
				return
			case err == bufio.ErrBufferFull:
				yield(Entry{}, &Damaged{path, n, fmt.Sprintf("it is longer than %d bytes", MaxLine)})
				return
			case err != nil:
				yield(Entry{}, fmt.Errorf("simulated: book %s cannot be read at line %d: %w", path, n, err))
				return
			}
			e, err := decodeEntry(b[:len(b)-1])
			if err != nil {
				yield(Entry{}, &Damaged{path, n, err.Error()})
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
