package kurrent

import (
	"fmt"
	"log/slog"
	"time"
)

// Options are the choices one has when opening a log beside its URL. The zero value is
// fine, and so is nil.
type Options struct {
	// ReadOnly opens the log for reading: Append returns [eventlog.ErrReadOnly].
	ReadOnly bool

	// Patience is how long a call goes on trying where its context does not end before:
	// an append whose result is not known, a read that is not answered, and Open. 0
	// means 10 s. Follow goes on for six times as long after its last event.
	Patience time.Duration

	// CallTimeout is how long the server may take over one request. 0 means what the
	// URL's defaultDeadline says, and 5 s where it says nothing.
	CallTimeout time.Duration

	// Trust is how long a stream that was seen whole is taken to be whole when an append
	// goes to its head, before it is looked at again (SPEC D5). 0 means 1 s.
	Trust time.Duration

	// Unseen is how long an append that lost against a write that cannot be read yet
	// waits for it, before it says that the stream's length is not known. 0 means 2 s.
	Unseen time.Duration

	// Clock tells the time that Trust is measured in; time.Now by default.
	Clock func() time.Time

	// Logger is told when the connection is lost and made again, and, at debug level,
	// what the client says. By default nothing is logged.
	Logger *slog.Logger
}

const (
	defaultPatience    = 10 * time.Second
	defaultCallTimeout = 5 * time.Second
	defaultTrust       = time.Second
	defaultUnseen      = 2 * time.Second
	followPatience     = 6 // times Patience
)

// filled returns the options with the defaults in place, or an error that names the
// option that is out of bounds.
func (o *Options) filled(s *settings) (Options, error) {
	var filled Options
	if o != nil {
		filled = *o
	}
	for _, d := range []struct {
		name    string
		value   *time.Duration
		initial time.Duration
	}{
		{"Patience", &filled.Patience, defaultPatience},
		{"CallTimeout", &filled.CallTimeout, s.callTimeout},
		{"Trust", &filled.Trust, defaultTrust},
		{"Unseen", &filled.Unseen, defaultUnseen},
	} {
		if *d.value < 0 {
			return Options{}, fmt.Errorf("kurrent: option %s is negative: %v", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.initial
		}
	}
	if filled.Clock == nil {
		filled.Clock = time.Now
	}
	if filled.Logger == nil {
		filled.Logger = slog.New(slog.DiscardHandler)
	}
	return filled, nil
}
