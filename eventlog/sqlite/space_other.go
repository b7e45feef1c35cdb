//go:build !linux && !darwin

package sqlite

import "errors"

// freeSpace returns errors.ErrUnsupported: there is no portable way to ask.
func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }

// writable returns why the user may not write a file or a folder, or nil.
func writable(path string) error { return modeOf(path) }

// onReadOnlyMount cannot tell here, and says no.
func onReadOnlyMount(string) bool { return false }
