package engines

import (
	"context"
	"fmt"
	"strings"

	"holdfast/eventlog"
	"holdfast/eventlog/kurrent"
	"holdfast/eventlog/memory"
	"holdfast/eventlog/sqlite"
)

// Options are the choices that hold for every engine. The zero value is fine, and so is
// nil.
type Options struct {
	// ReadOnly opens the log for reading: nothing is ever written, and Append
	// returns [eventlog.ErrReadOnly].
	ReadOnly bool
	// MustExist refuses to create a log.
	MustExist bool
}

// supported is what an error about a URL tells the user to write instead.
const supported = "write sqlite:PATH, esdb://HOST:PORT,... or memory:"

// Open opens the log that a URL names. It returns [*eventlog.OpenError] for a URL that it
// does not understand and for what the engine refuses.
func Open(ctx context.Context, url string, options *Options) (eventlog.Log, error) {
	if options == nil {
		options = &Options{}
	}
	engine, rest, found := strings.Cut(url, ":")
	if engine == "esdb" || engine == "esdb+discover" {
		return openKurrent(ctx, url, options)
	}
	if !found {
		return nil, refuse(url, "it is not the URL of a log", supported)
	}
	if before, after, found := strings.Cut(rest, "?"); found {
		return nil, refuse(url, fmt.Sprintf("it has options (%q), but there are none", after), fmt.Sprintf("write %s:%s", engine, before))
	}
	switch engine {
	case "sqlite":
		return openSQLite(ctx, url, rest, options)
	case "memory":
		return openMemory(url, rest, options)
	default:
		return nil, refuse(url, fmt.Sprintf("there is no engine %q", engine), supported)
	}
}

func openSQLite(ctx context.Context, url, path string, options *Options) (eventlog.Log, error) {
	if path == "" {
		return nil, refuse(url, "the path is missing", "write sqlite:PATH")
	}
	if strings.HasPrefix(path, "//") {
		return nil, refuse(url, "two slashes after the colon would name a host", "write sqlite:/absolute/path or sqlite:relative/path")
	}
	// Without this, a failed opening would be a nil *sqlite.Log in the interface.
	log, err := sqlite.Open(ctx, path, &sqlite.Options{ReadOnly: options.ReadOnly, MustExist: options.MustExist})
	if err != nil {
		return nil, err
	}
	return log, nil
}

// openKurrent leaves MustExist out: nothing is created by opening a log on a server.
func openKurrent(ctx context.Context, url string, options *Options) (eventlog.Log, error) {
	log, err := kurrent.Open(ctx, url, &kurrent.Options{ReadOnly: options.ReadOnly})
	if err != nil {
		return nil, err
	}
	return log, nil
}

func openMemory(url, rest string, options *Options) (eventlog.Log, error) {
	if rest != "" {
		return nil, refuse(url, "a log in memory has no path", "write memory:")
	}
	if options.ReadOnly || options.MustExist {
		return nil, refuse(url, "a log in memory is always new, so there is nothing in it to read", "name the log with sqlite:PATH")
	}
	return memory.New(), nil
}

// Redacted returns the URL of a log without the password that may be in it, fit to be
// shown and logged.
func Redacted(url string) string { return kurrent.Redacted(url) }

func refuse(url, reason, try string) error {
	return &eventlog.OpenError{Path: Redacted(url), Reason: reason, Try: try}
}
