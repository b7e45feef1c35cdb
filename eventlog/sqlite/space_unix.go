//go:build linux || darwin

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// freeSpace returns how many bytes the user may still write where a path is.
func freeSpace(path string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// writable returns why the user may not write a file or a folder, or nil.
func writable(path string) error {
	if err := modeOf(path); err != nil {
		return err
	}
	const write = 2
	return syscall.Access(path, write)
}

// onReadOnlyMount reports whether nobody may write in a folder, because its file system is
// mounted read-only: by somebody, or by the system after the disk failed. Some systems say
// so only to who tries, so that is tried, with a file that is gone again at once.
func onReadOnlyMount(folder string) bool {
	const write = 2
	if err := syscall.Access(folder, write); err != nil {
		return errors.Is(err, syscall.EROFS)
	}
	file, err := os.CreateTemp(folder, ".holdfast-*")
	if err != nil {
		return errors.Is(err, syscall.EROFS)
	}
	file.Close()
	_ = os.Remove(file.Name())
	return false
}
