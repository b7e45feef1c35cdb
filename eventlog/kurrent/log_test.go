package kurrent

import (
	"testing"

	"holdfast/eventlog"
	"holdfast/eventlog/logtest"
)

func TestConformance(t *testing.T) {
	servers := map[eventlog.Log]*script{}
	logtest.Run(t, logtest.Harness{
		Open: func(t *testing.T) eventlog.Log {
			s := keeping(t)
			l, err := Open(t.Context(), s.url(), nil)
			if err != nil {
				t.Fatal(err)
			}
			servers[l] = s
			return l
		},
		Reopen: func(t *testing.T, log eventlog.Log) eventlog.Log {
			s := servers[log]
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			s.stop()
			s.start(t)
			l, err := Open(t.Context(), s.url(), nil)
			if err != nil {
				t.Fatal(err)
			}
			servers[l] = s
			return l
		},
		Damage: func(t *testing.T, log eventlog.Log, stream string, revision uint64) {
			servers[log].keeper.remove(stream, revision)
		},
	})
}
