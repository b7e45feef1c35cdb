package integration

import (
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"holdfast/eventlog"
	"holdfast/eventlog/logtest"
)

// conformance runs the suite that every engine passes. Nothing can take single events out
// of a server, so its cases of damage are left out, and have tests of their own here.
func conformance(t *testing.T, s *server) {
	if s.unraced && raced() {
		t.Skip("too slow under the race detector; package kurrent runs it")
	}
	var mu sync.Mutex
	prefixes := map[eventlog.Log]string{}
	open := func(t *testing.T, prefix string) eventlog.Log {
		log := s.open(t, prefix, nil)
		mu.Lock()
		defer mu.Unlock()
		prefixes[log] = prefix
		return log
	}
	logtest.Run(t, logtest.Harness{
		Open: func(t *testing.T) eventlog.Log { return open(t, prefix()) },
		Reopen: func(t *testing.T, log eventlog.Log) eventlog.Log {
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			prefix := prefixes[log]
			mu.Unlock()
			return open(t, prefix)
		},
	})
}

// raced reports whether the race detector is at work.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
