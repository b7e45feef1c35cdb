package eventlog

import "fmt"

// OpenError is returned by the Open functions of the engines when they cannot open what
// they were pointed at. Nothing was written to it. If it also is [ErrUnavailable], in
// the sense of errors.Is, the log cannot be reached now, and opening it later may work;
// otherwise it is no log that this program can use, or its permissions do not allow it.
type OpenError struct {
	// Path is what was to be opened, as the user named it.
	Path string
	// Reason is a clause that says what is wrong.
	Reason string
	// Try says what the user can do about it, as an instruction; it may be empty.
	Try string
	// Err is the underlying error, where there is one; it wraps [ErrUnavailable] where
	// the log cannot be reached now.
	Err error
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("eventlog: cannot open %q: %s", e.Path, e.Reason)
}

// Unwrap returns the underlying error, or nil.
func (e *OpenError) Unwrap() error { return e.Err }
