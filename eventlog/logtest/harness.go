package logtest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"holdfast/eventlog"
)

// Harness says how to test an engine.
type Harness struct {
	// Open returns a fresh, empty log. The suite closes it.
	Open func(t *testing.T) eventlog.Log

	// Reopen closes a log that Open returned and opens the same one again. It is nil
	// for an engine that is not durable.
	Reopen func(t *testing.T, log eventlog.Log) eventlog.Log

	// CommitsTogether says that several stream appends of one call are applied all or
	// none. Otherwise they must be applied in order up to the first that fails.
	CommitsTogether bool

	// Damage takes one event out of a log behind the engine's back. It is nil if
	// that cannot be done.
	Damage func(t *testing.T, log eventlog.Log, stream string, revision uint64)
}

// Run runs the whole suite on an engine.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, h Harness)
	}{
		{"appends and reads back", readsBack},
		{"conflicts", conflicts},
		{"events of one append are all or none", eventsTogether},
		{"several streams", severalStreams},
		{"invalid appends", invalidAppends},
		{"large events", largeEvents},
		{"odd names", oddNames},
		{"retry of the same bytes", retries},
		{"same ids with another body", sameIDs},
		{"unknown result", unknownResult},
		{"retry of several streams", retriesSeveral},
		{"acknowledged is stored", acknowledgedIsStored},
		{"racing claimants", racingClaimants},
		{"order under concurrency", orderUnderConcurrency},
		{"reading from the middle", readingFromTheMiddle},
		{"long streams", longStreams},
		{"breaking out", breakingOut},
		{"calling the log while reading", callingWhileReading},
		{"following", following},
		{"following ends", followingEnds},
		{"cancelled contexts", cancelledContexts},
		{"close", closing},
		{"close during use", closeDuringUse},
		{"reopen", reopening},
		{"damaged streams", damagedStreams},
		{"reading past damage", readingPastDamage},
		{"head", heads},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, h) })
	}
}

// open opens a log that is closed with the test.
func (h Harness) open(t *testing.T) eventlog.Log {
	t.Helper()
	log := h.Open(t)
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return log
}

// event makes an event with a fresh id and a body that tells it from others.
func event(body string) eventlog.Event {
	return eventlog.Event{ID: uuid.New(), Type: "Tested", Data: []byte(body), Metadata: []byte("about " + body)}
}

// events makes n events.
func events(n int) []eventlog.Event {
	list := make([]eventlog.Event, n)
	for i := range list {
		list[i] = event(fmt.Sprintf("event %d", i))
	}
	return list
}

// to makes a stream append.
func to(stream string, at uint64, events ...eventlog.Event) eventlog.StreamAppend {
	return eventlog.StreamAppend{Stream: stream, At: at, Events: events}
}

// mustAppend appends or ends the test.
func mustAppend(t *testing.T, log eventlog.Log, appends ...eventlog.StreamAppend) eventlog.Position {
	t.Helper()
	position, err := log.Append(t.Context(), appends...)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	return position
}

// collect reads a sequence to its end or its first error.
func collect(sequence iter.Seq2[eventlog.Recorded, error]) ([]eventlog.Recorded, error) {
	var list []eventlog.Recorded
	for recorded, err := range sequence {
		if err != nil {
			return list, err
		}
		list = append(list, recorded)
	}
	return list, nil
}

// mustRead reads a stream or ends the test.
func mustRead(t *testing.T, log eventlog.Log, stream string, from uint64) []eventlog.Recorded {
	t.Helper()
	list, err := collect(log.ReadStream(context.Background(), stream, from))
	if err != nil {
		t.Fatalf("ReadStream(%q, %d): %v", stream, from, err)
	}
	return list
}

// mustReadAll reads the log or ends the test.
func mustReadAll(t *testing.T, log eventlog.Log, after eventlog.Position) []eventlog.Recorded {
	t.Helper()
	list, err := collect(log.ReadAll(context.Background(), after))
	if err != nil {
		t.Fatalf("ReadAll(%d): %v", after, err)
	}
	return list
}

// wantStream fails the test unless a stream holds exactly these events.
func wantStream(t *testing.T, log eventlog.Log, stream string, want ...eventlog.Event) {
	t.Helper()
	var expected []eventlog.Recorded
	for i, e := range want {
		expected = append(expected, eventlog.Recorded{Event: e, Stream: stream, Revision: uint64(i)})
	}
	got := mustRead(t, log, stream, 0)
	for i := range got {
		if i > 0 && got[i].Position <= got[i-1].Position {
			t.Errorf("stream %q: position %d of revision %d does not grow", stream, got[i].Position, i)
		}
		got[i].Position = 0
	}
	// Comparing first, because finding differences takes long on large events.
	if slices.EqualFunc(expected, got, equal) {
		return
	}
	t.Fatalf("stream %q (-want +got):\n%s", stream, cmp.Diff(expected, got, cmpopts.EquateEmpty()))
}

func equal(a, b eventlog.Recorded) bool {
	return a.ID == b.ID && a.Type == b.Type && bytes.Equal(a.Data, b.Data) && bytes.Equal(a.Metadata, b.Metadata) &&
		a.Stream == b.Stream && a.Revision == b.Revision && a.Position == b.Position
}
