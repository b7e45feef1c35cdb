package integration

import (
	"errors"
	"strings"
	"testing"

	"holdfast/eventlog"
	"holdfast/eventlog/kurrent"
	"holdfast/events"
	"holdfast/submissions"
)

// damaged fails the test unless an error says that a stream has lost its start.
func damaged(t *testing.T, what string, err error, stream string) {
	t.Helper()
	var d *eventlog.Damaged
	if !errors.As(err, &d) || d.Stream != stream || d.Kind != eventlog.Truncated {
		t.Errorf("%s = %v, want a Damaged", what, err)
	}
}

// read returns the error with which reading a stream ends.
func read(t *testing.T, log eventlog.Log, stream string, from uint64) error {
	t.Helper()
	for _, err := range log.ReadStream(t.Context(), stream, from) {
		if err != nil {
			return err
		}
	}
	return nil
}

// D5: an operator deletes the stream of a withdrawal that was paid. The server would let
// everybody begin it anew; nobody pays it again.
func deletedBehindOurBack(t *testing.T, s *server) {
	prefix, till := prefix(), newTill()
	l := ledger(t, s.log(t, prefix, nil))
	id := requested(t, l, "order-1")
	if c := submitted(t.Context(), l, "req-1", id, till.send); c.err != nil || c.holder != "" {
		t.Fatalf("Submit: %+v", c)
	}
	stream := id.Stream()
	s.softDelete(t, prefix+stream)

	log := s.log(t, prefix, nil)
	fresh := ledger(t, log)
	for name, l := range map[string]*submissions.Ledger{"a ledger that has seen it": l, "another": fresh} {
		for _, key := range []events.RequestKey{"req-1", "req-2"} {
			_, err := l.Submit(t.Context(), key, id, till.send, nil)
			if code, _ := submissions.CodeOf(err); code != submissions.CodeDamaged {
				t.Errorf("Submit under %s by %s = %v, want that it is damaged", key, name, err)
			}
		}
		_, err := l.Request(t.Context(), submissions.Request{
			By: submissions.By{Actor: "tester"}, Account: "alice", Reference: "order-1", Amount: "10.25", Currency: "EUR", Destination: "DE89",
		})
		if code, _ := submissions.CodeOf(err); code != submissions.CodeDamaged {
			t.Errorf("Request by %s = %v, want that it is damaged", name, err)
		}
	}
	if n := till.times(id); n != 1 {
		t.Errorf("the money left %d times", n)
	}
	damaged(t, "ReadStream", read(t, log, stream, 0), stream)
	_, err := log.Append(t.Context(), to(stream, 0, 1)) // the server takes it, at a later revision
	damaged(t, "an append to a stream that must not exist", err, stream)
	damaged(t, "ReadStream after that", read(t, log, stream, 0), stream)
	losing(t, log, stream)
}

// D5: an operator cuts off a stream's start.
func truncatedBehindOurBack(t *testing.T, s *server) {
	prefix := prefix()
	log := s.log(t, prefix, nil)
	appended(t, log, to("s", 0, 100))
	appended(t, log, to("r", 0, 1))
	s.truncate(t, prefix+"s", 2)
	other := s.log(t, prefix, nil)
	for _, from := range []uint64{0, 1, 2, 50, 70} {
		damaged(t, "ReadStream", read(t, other, "s", from), "s")
	}
	_, err := other.Append(t.Context(), to("s", 100, 1))
	damaged(t, "Append", err, "s")
	appended(t, other, to("r", 1, 1)) // the other streams are not affected
	losing(t, other, "s")
}

// losing fails the test unless an examination finds that a stream loses events.
func losing(t *testing.T, log *kurrent.Log, stream string) {
	t.Helper()
	if f := finding(t, log, "retention"); f.Grade != eventlog.Losing || !strings.Contains(f.Detail, stream) {
		t.Errorf("the examination finds %+v", f)
	}
}

// finding examines a log, and returns what was found by one check.
func finding(t *testing.T, log *kurrent.Log, check string) eventlog.Finding {
	t.Helper()
	findings, err := log.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Detail == "" || (f.Grade == eventlog.Fine) != (f.Remedy == "") {
			t.Errorf("%+v: a remedy is there exactly where something is wrong", f)
		}
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("there is no check %q in %+v", check, findings)
	return eventlog.Finding{}
}

// examined lets an operator give streams metadata, and looks at what is said of it.
func examined(t *testing.T, s *server) {
	for metadata, grade := range map[string]eventlog.Grade{
		`{"$maxAge":3600}`:                            eventlog.Losing,
		`{"$maxCount":5}`:                             eventlog.Losing,
		`{"$tb":0}`:                                   eventlog.Fine,
		`{"owner":"payments"}`:                        eventlog.Fine,
		`{"$acl":{"$d":"$all"}}`:                      eventlog.Risky,
		`{"$acl":{"$mw":["bob"]}}`:                    eventlog.Risky,
		`{"$acl":{"$d":"$admins","$mw":["$admins"]}}`: eventlog.Fine,
	} {
		t.Run(metadata, func(t *testing.T) {
			prefix := prefix()
			log := s.log(t, prefix, nil)
			appended(t, log, to("withdrawal-1", 0, 1))
			appended(t, log, to("withdrawal-2", 0, 1))
			if f := finding(t, log, "retention"); f.Grade != eventlog.Fine {
				t.Fatalf("before there is any metadata: %+v", f)
			}
			(&operator{s.url}).describe(t, prefix+"withdrawal-2", metadata)
			f := finding(t, log, "retention")
			if f.Grade != grade || grade != eventlog.Fine && (!strings.Contains(f.Detail, "withdrawal-2") || strings.Contains(f.Detail, "withdrawal-1")) {
				t.Errorf("%+v, want %s", f, grade)
			}
		})
	}
}
