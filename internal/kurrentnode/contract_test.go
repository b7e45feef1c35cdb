package kurrentnode_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/internal/kurrentnode"
)

// The contract: what a server answers, asked by the real client. It is checked on the node
// for tests, on a cluster of them, and on the server that HOLDFAST_TEST_ESDB names, whose
// user has to be an administrator: what they do not agree on, the node has wrong.
func onServers(t *testing.T, check func(t *testing.T, c *esdb.Client)) {
	servers := map[string]func(t *testing.T) string{
		"node":    func(t *testing.T) string { return kurrentnode.Keep(t).URL() },
		"cluster": func(t *testing.T) string { return kurrentnode.Gather(t, 3).URL() },
	}
	if url := os.Getenv("HOLDFAST_TEST_ESDB"); url != "" {
		servers["server"] = func(*testing.T) string { return url }
	}
	for name, server := range servers {
		t.Run(name, func(t *testing.T) { check(t, dial(t, server(t))) })
	}
}

// dial returns a bare client. It leaves a connection and its goroutines behind each time that
// it looks for another node, so nobody counts them here.
func dial(t *testing.T, url string) *esdb.Client {
	t.Helper()
	config, err := esdb.ParseConnectionString(url)
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = esdb.NoopLogging()
	client, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// state is what a stream has gone through before the append that is looked at.
type state string

const (
	never     state = "that never was"
	three     state = "of three events" // with the ids 0, 1 and 2
	deleted   state = "of three events, deleted"
	rewritten state = "of three events, deleted, and a fourth" // with the id 3
	cut       state = "of three events, of which the last is left"
	entombed  state = "of three events, deleted for good"
)

// subject is a stream in some state, and the ids of its events.
type subject struct {
	*esdb.Client
	name string
	ids  map[int]uuid.UUID
	last esdb.WriteResult // what its first append was answered with
}

func in(t *testing.T, c *esdb.Client, s state) *subject {
	t.Helper()
	x := &subject{Client: c, name: "contract-" + uuid.NewString(), ids: map[int]uuid.UUID{}}
	if s == never {
		return x
	}
	first, err := x.append(t, esdb.NoStream{}, "first", 0, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	x.last = *first
	switch s {
	case deleted, rewritten:
		_, err = c.DeleteStream(t.Context(), x.name, esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
		if err == nil && s == rewritten {
			_, err = x.append(t, esdb.NoStream{}, "anew", 3)
		}
	case cut:
		var m esdb.StreamMetadata
		m.SetTruncateBefore(2)
		_, err = c.SetStreamMetadata(t.Context(), x.name, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, m)
	case entombed:
		_, err = c.TombstoneStream(t.Context(), x.name, esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// append appends events with ids by their numbers.
func (x *subject) append(t *testing.T, expected esdb.ExpectedRevision, data string, ids ...int) (*esdb.WriteResult, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var events []esdb.EventData
	for _, i := range ids {
		if x.ids[i] == uuid.Nil {
			x.ids[i] = uuid.New()
		}
		events = append(events, esdb.EventData{EventID: x.ids[i], EventType: "Tested", Data: []byte(data)})
	}
	return x.AppendToStream(ctx, x.name, esdb.AppendToStreamOptions{ExpectedRevision: expected}, events...)
}

// read returns the revisions that can be read, and what the first event holds.
func (x *subject) read(t *testing.T) (revisions []uint64, data string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	reading, err := x.ReadStream(ctx, x.name, esdb.ReadStreamOptions{From: esdb.Start{}}, math.MaxUint64)
	if err != nil {
		return nil, "", err
	}
	defer reading.Close()
	for {
		e, err := reading.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return revisions, data, nil
		case err != nil:
			return nil, "", err
		}
		if len(revisions) == 0 {
			data = string(e.OriginalEvent().Data)
		}
		revisions = append(revisions, e.OriginalEvent().EventNumber)
	}
}

func codeOf(err error) esdb.ErrorCode {
	var e *esdb.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

// What becomes of an append, by what it expects and what there is: the table of the
// server's CheckCommit.
func TestAppends(t *testing.T) {
	at := func(revision uint64) esdb.ExpectedRevision { return esdb.Revision(revision) }
	none, exists, anything := esdb.NoStream{}, esdb.StreamExists{}, esdb.Any{}
	const (
		written  = "written"
		repeated = "taken for a repetition"
		blind    = "taken for a repetition, without a position"
		wrong    = "the wrong version"
		gone     = "deleted"
	)
	for _, c := range []struct {
		what     string
		expected esdb.ExpectedRevision
		state    state
		ids      []int
		want     string
		revision uint64 // that the server says the last event has
	}{
		{"nothing expected", none, never, []int{9}, written, 0},
		{"nothing expected, three at once", none, never, []int{7, 8, 9}, written, 2},
		{"anything expected", anything, never, []int{9}, written, 0},
		{"a revision expected", at(0), never, []int{9}, wrong, 0},
		{"a stream expected", exists, never, []int{9}, wrong, 0},

		{"nothing expected", none, entombed, []int{9}, gone, 0},
		{"a revision expected", at(2), entombed, []int{9}, gone, 0},
		{"anything expected", anything, entombed, []int{9}, gone, 0},
		{"a stream expected", exists, entombed, []int{9}, gone, 0},
		{"a repetition", none, entombed, []int{0, 1, 2}, gone, 0},

		{"the last revision expected", at(2), three, []int{9}, written, 3},
		{"the last revision expected, with the first event's id", at(2), three, []int{0}, written, 3},
		{"a later revision expected", at(3), three, []int{9}, wrong, 0},
		{"an earlier revision expected", at(1), three, []int{9}, wrong, 0},
		{"nothing expected", none, three, []int{9}, wrong, 0},
		{"a stream expected", exists, three, []int{9}, written, 3},
		{"anything expected", anything, three, []int{9}, written, 3},

		{"a repetition", none, three, []int{0, 1, 2}, repeated, 2},
		{"a repetition of the first ones", none, three, []int{0, 1}, repeated, 1},
		{"a repetition of the last ones", at(0), three, []int{1, 2}, repeated, 2},
		{"a repetition at another revision", none, three, []int{1, 2}, wrong, 0},
		{"a repetition in another order", none, three, []int{0, 2, 1}, wrong, 0},
		{"a repetition with one more", none, three, []int{0, 1, 2, 9}, wrong, 0},
		{"a repetition with another last one", none, three, []int{0, 1, 9}, wrong, 0},
		{"a repetition with another first one", none, three, []int{9, 1, 2}, wrong, 0},
		{"a repetition that expects anything", anything, three, []int{0, 1, 2}, repeated, 2},
		{"a repetition that expects a stream", exists, three, []int{1, 2}, repeated, 2},
		{"a repetition with one more that expects anything", anything, three, []int{2, 9}, wrong, 0},

		{"nothing expected", none, deleted, []int{9}, written, 3},
		{"anything expected", anything, deleted, []int{9}, written, 3},
		{"the last revision expected", at(2), deleted, []int{9}, written, 3},
		{"an earlier revision expected", at(1), deleted, []int{9}, wrong, 0},
		{"a stream expected", exists, deleted, []int{9}, gone, 0},
		{"a repetition", none, deleted, []int{0, 1, 2}, blind, 2},
		{"a repetition with another last one", none, deleted, []int{0, 1, 9}, wrong, 0},

		{"nothing expected", none, rewritten, []int{9}, wrong, 0},
		{"the last revision expected", at(3), rewritten, []int{9}, written, 4},
		{"nothing expected", none, cut, []int{9}, wrong, 0},
		{"the last revision expected", at(2), cut, []int{9}, written, 3},
	} {
		t.Run(c.what+", on a stream "+string(c.state), func(t *testing.T) {
			onServers(t, func(t *testing.T, client *esdb.Client) {
				x := in(t, client, c.state)
				result, err := x.append(t, c.expected, "again", c.ids...)
				got := written
				switch {
				case codeOf(err) == esdb.ErrorCodeWrongExpectedVersion:
					got = wrong
				case codeOf(err) == esdb.ErrorCodeStreamDeleted:
					got = gone
				case err != nil:
					t.Fatal(err)
				case result.CommitPosition == 0:
					got = blind
				case c.state != never && result.CommitPosition <= x.last.CommitPosition:
					got = repeated
				}
				if got != c.want {
					t.Fatalf("it was %s (%v), want: %s", got, err, c.want)
				}
				if err == nil && result.NextExpectedVersion != c.revision {
					t.Errorf("the last revision is said to be %d, want %d", result.NextExpectedVersion, c.revision)
				}
			})
		})
	}
}

// What can be read of a stream, by what it has gone through.
func TestReadings(t *testing.T) {
	for _, c := range []struct {
		state state
		want  []uint64
		code  esdb.ErrorCode
	}{
		{never, nil, esdb.ErrorCodeResourceNotFound},
		{three, []uint64{0, 1, 2}, 0},
		{deleted, nil, esdb.ErrorCodeResourceNotFound},
		{rewritten, []uint64{3}, 0},
		{cut, []uint64{2}, 0},
		{entombed, nil, esdb.ErrorCodeStreamDeleted},
	} {
		t.Run(string(c.state), func(t *testing.T) {
			onServers(t, func(t *testing.T, client *esdb.Client) {
				revisions, _, err := in(t, client, c.state).read(t)
				if c.want == nil && codeOf(err) != c.code || c.want != nil && err != nil || !slices.Equal(revisions, c.want) {
					t.Errorf("read %v, %v; want %v, code %v", revisions, err, c.want, c.code)
				}
			})
		})
	}
}

// A stream whose metadata lets it begin behind its end is empty, and there.
func TestEmptyStream(t *testing.T) {
	onServers(t, func(t *testing.T, client *esdb.Client) {
		x := in(t, client, three)
		var m esdb.StreamMetadata
		m.SetTruncateBefore(1000)
		if _, err := client.SetStreamMetadata(t.Context(), x.name, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, m); err != nil {
			t.Fatal(err)
		}
		if revisions, _, err := x.read(t); err != nil || len(revisions) != 0 {
			t.Errorf("read %v, %v", revisions, err)
		}
	})
}

// The same ids with other bytes are a repetition, and the first bytes stay.
func TestIDsAreComparedAlone(t *testing.T) {
	onServers(t, func(t *testing.T, client *esdb.Client) {
		x := in(t, client, three)
		if _, err := x.append(t, esdb.NoStream{}, "other bytes", 0, 1, 2); err != nil {
			t.Errorf("the same ids with other bytes: %v", err)
		}
		if revisions, data, err := x.read(t); err != nil || len(revisions) != 3 || data != "first" {
			t.Errorf("the stream has %v, the first event %q; %v", revisions, data, err)
		}
	})
}

// An append that is too large is refused, and nothing of it is written. The events are one
// larger than any server takes, and small ones around it.
func TestTooLarge(t *testing.T) {
	onServers(t, func(t *testing.T, client *esdb.Client) {
		x := &subject{Client: client, name: "contract-" + uuid.NewString()}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := client.AppendToStream(ctx, x.name, esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}},
			esdb.EventData{EventID: uuid.New(), EventType: "Small"},
			esdb.EventData{EventID: uuid.New(), EventType: "Large", Data: make([]byte, 16<<20+1)})
		var e *esdb.Error
		if !errors.As(err, &e) || status.Code(e.Err()) != codes.InvalidArgument {
			t.Errorf("Append = %v, want that it is invalid", err)
		}
		if revisions, _, err := x.read(t); codeOf(err) != esdb.ErrorCodeResourceNotFound {
			t.Errorf("%v was written; %v", revisions, err)
		}
	})
}

// All events of an append together are limited too; the limit is the node's own here, as
// servers differ in it.
func TestTooLargeTogether(t *testing.T) {
	n := kurrentnode.Keep(t)
	n.Streams.MaxAppend = 100 + 2*len("Tested")
	x := on(t, n, "s")
	event := func(size int) esdb.EventData {
		return esdb.EventData{EventID: uuid.New(), EventType: "Tested", Data: make([]byte, size)}
	}
	for _, c := range []struct {
		events []esdb.EventData
		fits   bool
	}{
		{[]esdb.EventData{event(50), event(50)}, false},
		{[]esdb.EventData{event(101)}, false},
		{[]esdb.EventData{event(100)}, true},
	} {
		_, err := x.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, c.events...)
		if c.fits != (err == nil) {
			t.Errorf("%d events: %v", len(c.events), err)
		}
	}
	x.holds(t, "of what fits", 1)
}
