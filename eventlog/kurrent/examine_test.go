package kurrent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// examined returns the findings by their checks, and fails the test where a bad one has no
// remedy.
func examined(t *testing.T, l *Log) map[string]eventlog.Finding {
	t.Helper()
	findings, err := l.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byCheck := map[string]eventlog.Finding{}
	for _, f := range findings {
		byCheck[f.Check] = f
		if f.Detail == "" || (f.Grade == eventlog.Fine) != (f.Remedy == "") {
			t.Errorf("%+v: a remedy is there exactly where something is wrong", f)
		}
	}
	return byCheck
}

func TestExamine(t *testing.T) {
	s := kurrentnode.Keep(t)
	l := dial(t, s, nil)
	appended(t, l, tested("withdrawal-1", 0, 1))
	appended(t, l, tested("withdrawal-2", 0, 1))
	events := s.Streams.Size()
	for check, f := range examined(t, l) {
		want := eventlog.Fine
		if check == "deletion" {
			want = eventlog.Risky // there are no users without TLS
		}
		if f.Grade != want {
			t.Errorf("%s: %+v", check, f)
		}
	}
	if n := s.Streams.Size(); n != events {
		t.Errorf("the examination left %d events behind", n-events)
	}
	for metadata, grade := range map[string]eventlog.Grade{
		`{"$maxAge":60}`:           eventlog.Losing,
		`{"$maxCount":5}`:          eventlog.Losing,
		`{"$tb":2}`:                eventlog.Losing,
		`{"$tb":0}`:                eventlog.Fine,
		`{"$cacheControl":5}`:      eventlog.Fine,
		`{"$acl":{"$d":"$all"}}`:   eventlog.Risky,
		`{"$acl":{"$mw":["bob"]}}`: eventlog.Risky,
		`{"$acl":{"$d":"$admins","$mw":["$admins"]}}`: eventlog.Fine,
		`{"$acl":"$userStreamAcl"}`:                   eventlog.Fine,
	} {
		s.Streams.Put("$$withdrawal-2", "$metadata", `{"$maxCount":1}`) // only the newest counts
		s.Streams.Put("$$withdrawal-2", "$metadata", metadata)
		s.Streams.Put("$$$ours-not", "$metadata", `{"$maxCount":1}`)
		f := examined(t, l)["retention"]
		if f.Grade != grade || grade != eventlog.Fine && !strings.Contains(f.Detail, "withdrawal-2") {
			t.Errorf("%s: %+v, want %s", metadata, f, grade)
		}
	}
	l.Close()
	if _, err := l.Examine(t.Context()); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("Examine of a closed log = %v", err)
	}
}

// Who may delete, as the server's defaults have it.
func TestExamineDefaults(t *testing.T) {
	for settings, grade := range map[string]eventlog.Grade{
		"": eventlog.Risky,
		`{"$userStreamAcl":{"$r":"$all","$w":"$all","$d":"$admins","$mr":"$all","$mw":"$admins"}}`: eventlog.Fine,
		`{"$userStreamAcl":{"$d":["$admins"],"$mw":["$admins"]}}`:                                  eventlog.Fine,
		`{"$userStreamAcl":{"$d":["$admins","bob"],"$mw":"$admins"}}`:                              eventlog.Risky,
		`{"$userStreamAcl":{"$d":"$admins"}}`:                                                      eventlog.Risky,
		`{"$systemStreamAcl":{"$d":"$admins","$mw":"$admins"}}`:                                    eventlog.Risky,
		`no JSON`: eventlog.Risky,
	} {
		s := kurrentnode.Keep(t)
		l := dial(t, s, nil)
		l.secure = true
		if settings != "" {
			s.Streams.Put("$settings", "settings", settings)
		}
		if f := examined(t, l)["deletion"]; f.Grade != grade {
			t.Errorf("%s: %+v, want %s", settings, f, grade)
		}
	}
}

// What the user is not allowed is a finding, and so is a server that has gone.
func TestExamineForbidden(t *testing.T) {
	denied := status.Error(codes.PermissionDenied, "denied")
	s := kurrentnode.Keep(t)
	l := dial(t, s, nil)
	s.On(func(int, *streams.AppendReq_Options, streams.Streams_AppendServer) error { return denied },
		func(_ int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
			if o.GetAll() != nil {
				return denied
			}
			return s.Streams.Read(o, r)
		})
	found := examined(t, l)
	for check, grade := range map[string]eventlog.Grade{"leader": eventlog.Fine, "append": eventlog.Forbidden, "read all": eventlog.Forbidden, "retention": eventlog.Risky} {
		if found[check].Grade != grade {
			t.Errorf("%s: %+v, want %s", check, found[check], grade)
		}
	}
	s.Stop()
	l.Patience = 50e6
	findings, err := l.Examine(t.Context())
	if err != nil || len(findings) != 1 || findings[0].Grade != eventlog.Unreachable {
		t.Errorf("of a server that has gone: %s, %v", fmt.Sprint(findings), err)
	}
}

// A server that does not let the user in is said so when the log is opened.
func TestOpenRefuses(t *testing.T) {
	s := kurrentnode.Start(t)
	for code, want := range map[codes.Code]error{codes.Unauthenticated: eventlog.ErrForbidden, codes.PermissionDenied: eventlog.ErrForbidden, codes.Unavailable: eventlog.ErrUnavailable} {
		s.On(nil, func(int, *streams.ReadReq_Options, streams.Streams_ReadServer) error { return status.Error(code, "no") })
		_, err := Open(t.Context(), s.URL(), &Options{Patience: 50e6})
		var refused *eventlog.OpenError
		if !errors.As(err, &refused) || !errors.Is(err, want) || refused.Reason == "" || refused.Try == "" {
			t.Errorf("Open of a server that says %s = %v", code, err)
		}
	}
	s.Stop()
	if _, err := Open(t.Context(), s.URL(), &Options{Patience: 50e6}); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("Open of a server that is not there = %v", err)
	}
	if _, err := Open(t.Context(), s.URL(), &Options{Trust: -1}); err == nil {
		t.Error("a negative option is taken")
	}
}
