package kurrent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// damaged fails the test unless an error says that the stream has lost its start.
func damaged(t *testing.T, what string, err error) {
	t.Helper()
	var d *eventlog.Damaged
	if !errors.As(err, &d) || d.Stream != "s" || d.Kind != eventlog.Truncated {
		t.Errorf("%s = %v, want a Damaged", what, err)
	}
}

func appended(t *testing.T, l *Log, a eventlog.StreamAppend) {
	t.Helper()
	if _, err := l.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// D5: whoever deletes a stream behind our back lets nobody claim anew. The server itself
// would let everybody.
func TestDeletedStreams(t *testing.T) {
	s := kurrentnode.Keep(t)
	l, other := dial(t, s, nil), dial(t, s, nil)
	first3 := tested("s", 0, 3)
	appended(t, l, first3)
	s.Streams.Delete("s")
	before := s.Streams.Len("s")

	damaged(t, "ReadStream", first(l.ReadStream(t.Context(), "s", 0)))
	damaged(t, "ReadStream from behind", first(l.ReadStream(t.Context(), "s", 2)))
	for at := uint64(1); at < 5; at++ {
		_, err := other.Append(t.Context(), tested("s", at, 1)) // has never seen the stream
		damaged(t, fmt.Sprintf("Append at %d", at), err)
	}
	_, err := l.Append(t.Context(), first3)
	damaged(t, "the repetition of what was deleted", err)
	if got := s.Streams.Len("s"); got != before {
		t.Fatalf("%d events were written", got-before)
	}

	// An append to a stream that must not exist cannot be kept from being written; it is
	// not taken for done, and shows.
	_, err = l.Append(t.Context(), tested("s", 0, 1))
	damaged(t, "Append at 0", err)
	damaged(t, "ReadStream after that", first(other.ReadStream(t.Context(), "s", 0)))
	_, err = other.Append(t.Context(), tested("s", 0, 1))
	damaged(t, "Append at 0 after that", err)
	_, err = other.Append(t.Context(), tested("s", 4, 1))
	damaged(t, "Append at the head after that", err)
}

// A stream whose start is out of reach, and one that was deleted for good.
func TestTruncatedStreams(t *testing.T) {
	s := kurrentnode.Keep(t)
	l := dial(t, s, nil)
	appended(t, l, tested("s", 0, 100))
	s.Streams.Truncate("s", 2)
	for _, from := range []uint64{0, 1, 2, 50, 70, 99, 100} {
		damaged(t, fmt.Sprintf("ReadStream from %d", from), first(l.ReadStream(t.Context(), "s", from)))
	}
	_, err := dial(t, s, nil).Append(t.Context(), tested("s", 100, 1))
	damaged(t, "Append", err)
	s.Streams.Truncate("s", 1000)
	damaged(t, "ReadStream of a stream of which nothing is left", first(l.ReadStream(t.Context(), "s", 0)))
}

// The server's own events are no part of the log, in streams of ours neither: a tombstone,
// a link.
func TestServersOwnEvents(t *testing.T) {
	s := kurrentnode.Keep(t)
	l := dial(t, s, nil)
	appended(t, l, tested("s", 0, 1))
	s.Streams.Put("s", "$>", "0@other")
	s.Streams.Put("$stats-0", "Stats", "{}")
	appended(t, l, tested("r", 0, 1))
	var seen []string
	for r, err := range l.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, r.Stream)
	}
	if strings.Join(seen, " ") != "s r" {
		t.Errorf("the log has events of %v", seen)
	}
	s.Streams.Put("$stats-0", "Stats", "{}")
	if head, err := l.Head(t.Context()); err != nil || head != last(t, l, "r") {
		t.Errorf("Head = %d, %v", head, err)
	}
}

// last returns the position of a stream's last event.
func last(t *testing.T, l *Log, stream string) (position eventlog.Position) {
	t.Helper()
	for r, err := range l.ReadStream(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		position = r.Position
	}
	return position
}

// What was seen whole is taken to be whole for a moment, and no longer.
func TestTrustEnds(t *testing.T) {
	s := kurrentnode.Keep(t)
	var now atomic.Int64
	options := brief()
	options.Clock = func() time.Time { return time.Unix(now.Load(), 0) }
	options.Trust = 10 * time.Second
	l := dial(t, s, options)
	appended(t, l, tested("s", 0, 1))
	reads := func() int { _, n := s.Counts(); return n }
	before := reads()
	for at := range uint64(5) { // one append after another, and no look between them
		appended(t, l, tested("s", at+1, 1))
	}
	if n := reads() - before; n != 0 {
		t.Errorf("%d requests to read between appends", n)
	}
	now.Add(9)
	appended(t, l, tested("s", 6, 1))
	if n := reads() - before; n != 0 {
		t.Errorf("%d requests to read while what was seen is trusted", n)
	}
	now.Add(1)
	appended(t, l, tested("s", 7, 1)) // looks again
	if n := reads() - before; n != 1 {
		t.Errorf("%d requests to read once it is not", n)
	}
	s.Streams.Delete("s")
	now.Add(10)
	_, err := l.Append(t.Context(), tested("s", 8, 1))
	damaged(t, "Append", err)
}

// What is seen of a stream that this log has not appended to counts as well.
func TestReadingIsLooking(t *testing.T) {
	s := kurrentnode.Keep(t)
	appended(t, dial(t, s, nil), tested("s", 0, 3))
	l := dial(t, s, nil)
	n := 0
	for _, err := range l.ReadStream(t.Context(), "s", 1) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	_, before := s.Counts()
	appended(t, l, tested("s", 3, 1))
	if _, after := s.Counts(); n != 2 || after != before {
		t.Errorf("%d events, %d requests to read between reading and appending", n, after-before)
	}
}

// Logs with prefixes of their own share a server, and do not see each other.
func TestPrefixes(t *testing.T) {
	s := kurrentnode.Keep(t)
	open := func(prefix string) *Log {
		l, err := Open(t.Context(), s.URL()+"&prefix="+prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	a, b, all := open("a."), open("b."), dial(t, s, nil)
	appended(t, a, tested("s", 0, 2))
	appended(t, b, tested("s", 0, 1))
	appended(t, all, tested("b", 0, 1))
	for l, want := range map[*Log]int{a: 2, b: 1, all: 4} {
		n := 0
		for r, err := range l.ReadAll(t.Context(), eventlog.Start) {
			if err != nil || l != all && r.Stream != "s" {
				t.Fatalf("%+v, %v", r, err)
			}
			n++
		}
		followed := 0
		for _, err := range l.Follow(t.Context(), eventlog.Start) {
			if err != nil {
				t.Fatal(err)
			}
			if followed++; followed == want {
				break
			}
		}
		if n != want {
			t.Errorf("a log with prefix %q has %d events, want %d", l.prefix, n, want)
		}
	}
}

// The answer to an append is lost, in every way that there is: the append is in the log
// once, and its caller is told so.
func TestLostAnswers(t *testing.T) {
	for _, code := range []codes.Code{codes.Aborted, codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown} {
		t.Run(code.String(), func(t *testing.T) {
			s := kurrentnode.Keep(t)
			s.Lose(func(n int) error {
				if n%3 < 2 {
					return status.Error(code, "the answer was lost")
				}
				return nil
			})
			l := dial(t, s, nil)
			for at := range uint64(3) {
				appended(t, l, tested("s", 2*at, 2))
			}
			n := 0
			for _, err := range l.ReadStream(t.Context(), "s", 0) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != 6 {
				t.Errorf("%d events", n)
			}
		})
	}
}

// A10: of 64 claimants one wins, a hundred times over.
func TestA10RacingClaimants(t *testing.T) {
	s := kurrentnode.Keep(t)
	options := brief()
	options.Unseen = 10 * time.Second // however busy the machine is
	logs := []*Log{dial(t, s, options), dial(t, s, options), dial(t, s, options)}
	const rounds, claimants = 100, 64
	for round := range rounds {
		stream := fmt.Sprintf("withdrawal-%d", round)
		var won atomic.Int64
		var group sync.WaitGroup
		for i := range claimants {
			group.Go(func() {
				_, err := logs[i%len(logs)].Append(t.Context(), tested(stream, 0, 1))
				var c *eventlog.Conflict
				switch {
				case err == nil:
					won.Add(1)
				case !errors.As(err, &c) || c.Actual == nil || *c.Actual != 1:
					t.Errorf("Append = %v, want a conflict with one event", err)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d claimants won", round, won.Load())
		}
	}
}

// Event ids that are derived from what is claimed make the server tell every claimant that
// it has won. Through this log they do not, as long as the claims say who claims.
func TestDerivedIDs(t *testing.T) {
	s := kurrentnode.Keep(t)
	derived := uuid.NewSHA1(uuid.NameSpaceOID, []byte("w1"))
	claim := func(stream, key string) eventlog.StreamAppend {
		return eventlog.StreamAppend{Stream: stream, Events: []eventlog.Event{{ID: derived, Type: "KeyClaimed", Data: []byte(key)}}}
	}
	config, err := esdb.ParseConnectionString(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = esdb.NoopLogging()
	bare, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	for _, key := range []string{"req-1", "req-2"} {
		_, err := bare.AppendToStream(context.Background(), "bare", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}},
			esdb.EventData{EventID: derived, EventType: "KeyClaimed", Data: []byte(key)})
		if err != nil {
			t.Errorf("the server does not tell %s that it has won (%v): this test shows nothing", key, err)
		}
	}
	l, other := dial(t, s, nil), dial(t, s, nil)
	appended(t, l, claim("s", "req-1"))
	appended(t, other, claim("s", "req-1")) // a retry, by whomever
	var c *eventlog.Conflict
	if _, err := other.Append(t.Context(), claim("s", "req-2")); !errors.As(err, &c) {
		t.Errorf("the second claimant: %v, want a conflict", err)
	}
}
