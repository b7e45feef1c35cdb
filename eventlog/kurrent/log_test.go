package kurrent

import (
	"testing"

	"holdfast/eventlog"
	"holdfast/eventlog/logtest"
	"holdfast/internal/kurrentnode"
)

func TestConformance(t *testing.T) {
	servers := map[eventlog.Log]*kurrentnode.Node{}
	logtest.Run(t, logtest.Harness{
		Open: func(t *testing.T) eventlog.Log {
			s := kurrentnode.Keep(t)
			l, err := Open(t.Context(), s.URL(), nil)
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
			s.Stop()
			s.Listen(t)
			l, err := Open(t.Context(), s.URL(), nil)
			if err != nil {
				t.Fatal(err)
			}
			servers[l] = s
			return l
		},
		Damage: func(t *testing.T, log eventlog.Log, stream string, revision uint64) {
			servers[log].Streams.Remove(stream, revision)
		},
	})
}
