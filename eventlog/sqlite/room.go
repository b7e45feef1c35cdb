package sqlite

import (
	"os"

	"zombiezen.com/go/sqlite"
)

const (
	// frameSize is the size in bytes of one page in the write-ahead log.
	frameSize = pageSize + 24

	// roomStep is by how much the file of the write-ahead log is made longer at a
	// time, and roomLeft how much of it may be left before that is done.
	roomStep = 4 << 20
	roomLeft = 1 << 20
)

// room makes the file of the write-ahead log longer than what is in it, in large steps
// and between commits. A commit that has to make the file longer itself costs nearly
// twice as much, because the file system then has to write down where the new blocks
// are. SQLite ends its reading of a write-ahead log at the first frame that is not
// sound, and zeros are none.
//
// Other processes' commits append to the same file, so it is made longer only inside a
// write transaction, which keeps them away.
type room struct {
	path            string
	begin, rollback *sqlite.Stmt
	// size is how long the file is known to be, in bytes.
	size int64
}

// ensure makes room for what comes after the given number of pages. It is no loss when
// that fails: the commits then do it themselves.
func (r *room) ensure(pages int64) {
	if used := pages * frameSize; used >= walPages*frameSize || used+roomLeft < r.size {
		return
	}
	if err := run(r.begin); err != nil {
		_ = r.begin.Reset()
		return
	}
	defer func() {
		if run(r.rollback) != nil {
			_ = r.rollback.Reset()
		}
	}()
	file, err := os.OpenFile(r.path, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return
	}
	before := info.Size()
	r.size = before
	if before > pages*frameSize+roomStep {
		return // another process has made room
	}
	if err := lengthen(file, before); err != nil {
		_ = file.Truncate(before) // a full disk: leave it to what has to be written
		return
	}
	r.size = before + roomStep
}

// lengthen writes zeros, because blocks that were only set aside cost a commit as much as
// none, and makes sure that they are there.
func lengthen(file *os.File, from int64) error {
	zeros := make([]byte, 64<<10)
	for at := from; at < from+roomStep; at += int64(len(zeros)) {
		if _, err := file.WriteAt(zeros, at); err != nil {
			return err
		}
	}
	return file.Sync()
}
