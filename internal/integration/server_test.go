package integration

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/eventlog/kurrent"
)

// server is a server to test on.
type server struct {
	url string // without a prefix
	// restart stops it and starts it again, and restarts is how often that is done under
	// load; why says why it cannot, where restart is nil.
	restart  func(t *testing.T)
	restarts int
	why      string
	// unraced leaves the conformance suite out under the race detector: on the double it
	// takes a minute then, and package kurrent runs it on the same code.
	unraced bool
	// softDelete and truncate are what an operator does with a stream: they let it be
	// deleted, so that it can be written to again, or begin at a revision.
	softDelete func(t *testing.T, stream string)
	truncate   func(t *testing.T, stream string, before uint64)
}

// TestServer runs the suite on a server that is at hand.
func TestServer(t *testing.T) {
	url := os.Getenv("HOLDFAST_TEST_ESDB")
	if url == "" {
		t.Skip("no server is named: set HOLDFAST_TEST_ESDB to its URL, as esdb://admin:PASSWORD@HOST:PORT,...")
	}
	if strings.Contains(url, "prefix=") {
		t.Fatal("HOLDFAST_TEST_ESDB has a prefix: leave it out, each log gets one of its own")
	}
	suite(t, &server{url: url, why: "the server is not the test's to restart; the tests with containers do that"})
}

// suite runs everything on a server.
func suite(t *testing.T, s *server) {
	operator := &operator{url: s.url}
	if s.softDelete == nil {
		s.softDelete = operator.softDelete
	}
	if s.truncate == nil {
		s.truncate = operator.truncate
	}
	s.ready(t)
	s.fit(t)
	for _, c := range []struct {
		name string
		test func(t *testing.T, s *server)
	}{
		{"conformance", conformance},
		{"racing claimants", racingClaimants},
		{"deleted behind our back", deletedBehindOurBack},
		{"truncated behind our back", truncatedBehindOurBack},
		{"examined", examined},
		{"restarted under load", restartedUnderLoad},
		{"followed across a restart", followedAcrossARestart},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
}

// prefix returns one that no log has had.
func prefix() string { return "holdfast-test." + strings.ToLower(rand.Text()[:12]) + "." }

// at returns the URL of the log with a prefix.
func (s *server) at(prefix string) string {
	if strings.Contains(s.url, "?") {
		return s.url + "&prefix=" + prefix
	}
	return s.url + "?prefix=" + prefix
}

// patient are options for a log that has to outlast a restart.
func patient() *kurrent.Options { return &kurrent.Options{Patience: 3 * time.Minute} }

// open opens the log with a prefix, for the test to close.
func (s *server) open(t *testing.T, prefix string, options *kurrent.Options) *kurrent.Log {
	t.Helper()
	log, err := kurrent.Open(t.Context(), s.at(prefix), options)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// log opens the log with a prefix, and closes it with the test.
func (s *server) log(t *testing.T, prefix string, options *kurrent.Options) *kurrent.Log {
	t.Helper()
	log := s.open(t, prefix, options)
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return log
}

// ready waits until an append goes through. A server that says that it lives may have no
// leader yet, and a new one that has users may not have made them.
func (s *server) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		err := s.appends(ctx)
		if err == nil {
			return
		}
		if !errors.Is(err, eventlog.ErrUnavailable) && !errors.Is(err, eventlog.ErrNotExecuted) &&
			!errors.Is(err, eventlog.ErrUnknownResult) && !errors.Is(err, eventlog.ErrForbidden) {
			t.Fatalf("the server cannot be used: %v", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("the server at %s does not take an append: %v", kurrent.Redacted(s.url), err)
		}
	}
}

func (s *server) appends(ctx context.Context) error {
	log, err := kurrent.Open(ctx, s.at(prefix()), nil)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = log.Append(ctx, to("ready", 0, 1))
	return err
}

// fit makes sure that the server lets the tests do what they do, so that it is said once,
// with the remedy.
func (s *server) fit(t *testing.T) {
	t.Helper()
	log := s.log(t, prefix(), nil)
	findings, err := log.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Grade != eventlog.Fine && f.Grade != eventlog.Risky {
			t.Fatalf("the tests cannot run on this server: %s: %s; %s", f.Check, f.Detail, f.Remedy)
		}
	}
	large := eventlog.Event{ID: uuid.New(), Type: "L", Data: make([]byte, eventlog.MaxAppendBytes-1)}
	if _, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: "large", Events: []eventlog.Event{large}}); err != nil {
		t.Fatalf("the server does not take the largest append there is; set its MaxAppendSize to 2097152: %v", err)
	}
}

// to makes an append of n events.
func to(stream string, at uint64, n int) eventlog.StreamAppend {
	a := eventlog.StreamAppend{Stream: stream, At: at}
	for range n {
		a.Events = append(a.Events, eventlog.Event{ID: uuid.New(), Type: "Tested", Data: []byte(`{"n":1}`), Metadata: []byte(`{}`)})
	}
	return a
}

// appended appends, or ends the test.
func appended(t *testing.T, log eventlog.Log, a eventlog.StreamAppend) {
	t.Helper()
	if _, err := log.Append(t.Context(), a); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

// operator is somebody with a client of their own.
type operator struct{ url string }

// do lets the operator do something.
func (o *operator) do(t *testing.T, what string, act func(ctx context.Context, c *esdb.Client) error) {
	t.Helper()
	config, err := esdb.ParseConnectionString(o.url)
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = esdb.NoopLogging()
	c, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := act(t.Context(), c); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (o *operator) softDelete(t *testing.T, stream string) {
	t.Helper()
	o.do(t, "deleting "+stream, func(ctx context.Context, c *esdb.Client) error {
		_, err := c.DeleteStream(ctx, stream, esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
		return err
	})
}

func (o *operator) truncate(t *testing.T, stream string, before uint64) {
	t.Helper()
	o.describe(t, stream, fmt.Sprintf(`{"$tb":%d}`, before))
}

// describe writes the first metadata of a stream.
func (o *operator) describe(t *testing.T, stream, metadata string) {
	t.Helper()
	o.do(t, "writing the metadata of "+stream, func(ctx context.Context, c *esdb.Client) error {
		_, err := c.AppendToStream(ctx, "$$"+stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}},
			esdb.EventData{EventID: uuid.New(), EventType: "$metadata", ContentType: esdb.ContentTypeJson, Data: []byte(metadata)})
		return err
	})
}
