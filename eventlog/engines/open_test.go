package engines_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"holdfast/eventlog"
	"holdfast/eventlog/engines"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	absolute := filepath.Join(t.TempDir(), "100%41 #.db")
	for _, url := range []string{"memory:", "sqlite:relative.db", "sqlite:./relative.db", "sqlite:" + absolute, "sqlite::memory:"} {
		log, err := engines.Open(t.Context(), url, nil)
		if err != nil {
			t.Errorf("Open(%q): %v", url, err)
			continue
		}
		_, err = log.Append(t.Context(), eventlog.StreamAppend{Stream: uuid.NewString(), Events: []eventlog.Event{{ID: uuid.New(), Type: "T"}}})
		if err != nil {
			t.Errorf("Append to %q: %v", url, err)
		}
		if err := log.Close(); err != nil {
			t.Errorf("Close of %q: %v", url, err)
		}
	}
	// Every path named a file of its own, except the two that are the same.
	for file, want := range map[string]int{"relative.db": 2, absolute: 1, ":memory:": 1} {
		log, err := engines.Open(t.Context(), "sqlite:"+file, &engines.Options{ReadOnly: true})
		if err != nil {
			t.Errorf("Open(%q): %v", file, err)
			continue
		}
		n := 0
		for _, err := range log.ReadAll(t.Context(), eventlog.Start) {
			if err != nil {
				t.Errorf("ReadAll of %q: %v", file, err)
			}
			n++
		}
		if n != want {
			t.Errorf("%q has %d events, want %d", file, n, want)
		}
		if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: "s", Events: []eventlog.Event{{ID: uuid.New(), Type: "T"}}}); !errors.Is(err, eventlog.ErrReadOnly) || errors.Is(err, eventlog.ErrNotExecuted) {
			t.Errorf("Append = %v, want ErrReadOnly", err)
		}
		log.Close()
	}
}

func TestOpenRefuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.db")
	for _, c := range []struct {
		url     string
		options engines.Options
		reason  string
	}{
		{"", engines.Options{}, "not the URL"},
		{"log.db", engines.Options{}, "not the URL"},
		{"/var/log.db", engines.Options{}, "not the URL"},
		{"postgres://x/y", engines.Options{}, `no engine "postgres"`},
		{"SQLite:x", engines.Options{}, `no engine "SQLite"`},
		{"sqlite:", engines.Options{}, "path is missing"},
		{"sqlite://x/y", engines.Options{}, "two slashes"},
		{"sqlite:///x/y", engines.Options{}, "two slashes"},
		{"sqlite:x?mode=ro", engines.Options{}, "has options"},
		{"sqlite:x?", engines.Options{}, "has options"},
		{"memory:x", engines.Options{}, "no path"},
		{"memory:?x", engines.Options{}, "has options"},
		{"memory:", engines.Options{ReadOnly: true}, "always new"},
		{"memory:", engines.Options{MustExist: true}, "always new"},
		{"esdb:x", engines.Options{}, "does not start with esdb://"},
		{"esdb://[::1]", engines.Options{}, "IPv6"},
		{"esdb://u:p@x?tls=false", engines.Options{}, "never sent"},
		{"esdb+discover://x,y", engines.Options{}, "takes one name"},
		{"kurrentdb://x", engines.Options{}, `no engine "kurrentdb"`},
		{"sqlite:" + missing, engines.Options{MustExist: true}, "no such file"},
		{"sqlite:" + missing, engines.Options{ReadOnly: true}, "no such file"},
	} {
		log, err := engines.Open(t.Context(), c.url, &c.options)
		var refused *eventlog.OpenError
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, c.reason) || refused.Try == "" {
			t.Errorf("Open(%q, %+v) = %v, want an OpenError that says %q", c.url, c.options, err, c.reason)
		}
		if log != nil {
			t.Errorf("Open(%q) returned a log besides an error", c.url)
		}
	}
}
