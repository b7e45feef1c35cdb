package kurrent

import (
	"testing"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// A log, and a stream, of more events than one request reads.
func TestPages(t *testing.T) {
	n := kurrentnode.Keep(t)
	l := dial(t, n, nil)
	const total = 2*pageEvents + 1
	for at := uint64(0); at < total; at += eventlog.MaxAppendEvents {
		appended(t, l, tested("s", at, int(min(eventlog.MaxAppendEvents, total-at))))
	}
	for name, sequence := range map[string]func(func(eventlog.Recorded, error) bool){
		"ReadAll": l.ReadAll(t.Context(), eventlog.Start), "ReadStream": l.ReadStream(t.Context(), "s", 0),
	} {
		next := uint64(0)
		for r, err := range sequence {
			if err != nil || r.Revision != next {
				t.Fatalf("%s: revision %d, %v where %d should be", name, r.Revision, err, next)
			}
			next++
		}
		if next != total {
			t.Errorf("%s yields %d events, want %d", name, next, total)
		}
	}
}
