package kurrent

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// brief are options for tests in which nothing takes long.
func brief() *Options {
	return &Options{Patience: 2 * time.Second, CallTimeout: time.Second, Unseen: 100 * time.Millisecond}
}

// dial opens a log on a node; the test closes it.
func dial(t *testing.T, n *kurrentnode.Node, options *Options) *Log {
	t.Helper()
	if options == nil {
		options = brief()
	}
	l, err := Open(t.Context(), n.URL(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// cluster starts two nodes of which the first leads, and opens a log on them. The function
// that it returns lets another lead.
func cluster(t *testing.T, options *Options) (l *Log, a, b *kurrentnode.Node, lead func(*kurrentnode.Node)) {
	t.Helper()
	a, b = kurrentnode.Start(t), kurrentnode.Start(t)
	lead = func(n *kurrentnode.Node) {
		a.Follow(n)
		b.Follow(n)
	}
	lead(a)
	l, err := Open(t.Context(), "esdb://"+a.Address()+","+b.Address()+"?tls=false&maxDiscoverAttempts=5&discoveryInterval=10&gossipTimeout=1", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, a, b, lead
}

func tested(stream string, at uint64, n int) eventlog.StreamAppend {
	a := eventlog.StreamAppend{Stream: stream, At: at}
	for range n {
		a.Events = append(a.Events, eventlog.Event{ID: uuid.New(), Type: "Tested"})
	}
	return a
}
