package events

import (
	"fmt"
	"time"
)

const (
	timestampLayout = "2006-01-02T15:04:05.000000Z"
	timestampPoint  = len("2006-01-02T15:04:05")
)

// Timestamp is an instant in UTC with microseconds, as it is written in events
// (RFC 3339). Two equal instants compare equal with ==.
type Timestamp struct{ t time.Time }

// At returns the instant of t, cut down to the microsecond.
func At(t time.Time) Timestamp {
	return Timestamp{time.UnixMicro(t.UnixMicro()).UTC()}
}

// Time returns the instant as a time.Time in UTC.
func (t Timestamp) Time() time.Time { return t.t }

// Equal reports whether two instants are the same; == does as well.
func (t Timestamp) Equal(u Timestamp) bool { return t == u }

// IsZero reports whether the timestamp was never set.
func (t Timestamp) IsZero() bool { return t.t.IsZero() }

// String returns the instant as it is written in events.
func (t Timestamp) String() string { return t.t.Format(timestampLayout) }

// MarshalText writes the instant. The zero value and years that RFC 3339 cannot write
// are errors.
func (t Timestamp) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// AppendText appends what MarshalText writes, with the same errors.
func (t Timestamp) AppendText(to []byte) ([]byte, error) {
	if year := t.t.Year(); t.IsZero() || year < 1 || year > 9999 {
		return to, fmt.Errorf("timestamp is not set, or not within the years 1 to 9999")
	}
	return t.t.AppendFormat(to, timestampLayout), nil
}

// UnmarshalText reads exactly the form that MarshalText writes, of the instants that it
// writes.
func (t *Timestamp) UnmarshalText(text []byte) error {
	parsed, err := time.Parse(timestampLayout, string(text))
	// The library takes a comma for the point, and a year that is never written.
	if err != nil || len(text) != len(timestampLayout) || text[timestampPoint] != '.' || parsed.Year() < 1 || parsed.IsZero() {
		return fmt.Errorf("timestamp %s is not of the form %s", Quote(string(text)), timestampLayout)
	}
	*t = At(parsed)
	return nil
}
