package kurrent

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

const password = "p@ss:w/rd?50% of it"

// guarded starts a node behind TLS with users, and returns what its URLs begin and end with
// around the options.
func guarded(t *testing.T) (n *kurrentnode.Node, as func(user, password, options string) string, authority string) {
	t.Helper()
	n, authority = kurrentnode.Guard(t, kurrentnode.Users{
		"admin":  {Password: password, Admin: true},
		"teller": {Password: password},
		"blind":  {Password: password, Blind: true},
	})
	return n, func(user, password, options string) string {
		credentials := ""
		if user != "" {
			credentials = url.UserPassword(user, password).String() + "@"
		}
		return "esdb://" + credentials + n.Address() + "?maxDiscoverAttempts=1&gossipTimeout=1" + options
	}, authority
}

func openAs(t *testing.T, named string) (*Log, error) {
	t.Helper()
	l, err := Open(t.Context(), named, &Options{Patience: 300 * time.Millisecond, CallTimeout: 5 * time.Second})
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

// Over TLS, the certificate is checked against the authority that the URL names.
func TestTLS(t *testing.T) {
	n, as, authority := guarded(t)
	_, other := kurrentnode.Guard(t, nil)
	for name, c := range map[string]struct {
		url  string
		want error
	}{
		"its authority":            {as("admin", password, "&tlsCAFile="+url.PathEscape(authority)), nil},
		"no check":                 {as("admin", password, "&tlsVerifyCert=false"), nil},
		"another authority":        {as("admin", password, "&tlsCAFile="+url.PathEscape(other)), eventlog.ErrUnavailable},
		"the system's authorities": {as("admin", password, ""), eventlog.ErrUnavailable},
		"no TLS":                   {"esdb://" + n.Address() + "?tls=false&maxDiscoverAttempts=1&gossipTimeout=1", eventlog.ErrUnavailable},
	} {
		l, err := openAs(t, c.url)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: Open = %v, want %v", name, err, c.want)
		}
		if err == nil {
			appended(t, l, tested("s-"+strings.ReplaceAll(name, " ", "-"), 0, 1))
		} else if refused := (*eventlog.OpenError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Try, "TLS") {
			t.Errorf("%s: %v does not think of TLS", name, err)
		}
	}
}

// The credentials in the URL reach the server, and what it makes of them the caller.
func TestCredentials(t *testing.T) {
	_, as, authority := guarded(t)
	ca := "&tlsCAFile=" + url.PathEscape(authority)
	for name, named := range map[string]string{
		"a wrong password": as("admin", "changeit", ca),
		"an unknown user":  as("nobody", password, ca),
		"no user":          as("", "", ca),
	} {
		_, err := openAs(t, named)
		var refused *eventlog.OpenError
		if !errors.As(err, &refused) || !errors.Is(err, eventlog.ErrForbidden) || refused.Try == "" {
			t.Errorf("%s: Open = %v, want that it is forbidden", name, err)
			continue
		}
		if strings.Contains(err.Error(), "changeit") || strings.Contains(err.Error(), url.PathEscape(password)) || strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

// What each user may do, through every call of the port. Whether a stream was deleted is in
// its metadata, so who may not read that is not told that a stream never was.
func TestRights(t *testing.T) {
	_, as, authority := guarded(t)
	for user, forbidden := range map[string][]string{
		"admin":  nil,
		"teller": {"ReadAll", "Follow", "Head"},
		"blind":  {"ReadAll", "Follow", "Head", "ReadStream of no stream"},
	} {
		l, err := openAs(t, as(user, password, "&tlsCAFile="+url.PathEscape(authority)))
		if err != nil {
			t.Fatal(err)
		}
		stream := "s-" + user
		appended(t, l, tested(stream, 0, 1))
		appended(t, l, tested(stream, 1, 1))
		for call, err := range map[string]error{
			"ReadStream":              first(l.ReadStream(t.Context(), stream, 0)),
			"ReadStream of no stream": first(l.ReadStream(t.Context(), "none", 0)),
			"ReadAll":                 first(l.ReadAll(t.Context(), eventlog.Start)),
			"Follow":                  first(l.Follow(t.Context(), eventlog.Start)),
			"Head":                    func() error { _, err := l.Head(t.Context()); return err }(),
		} {
			want := slices.Contains(forbidden, call)
			if got := errors.Is(err, eventlog.ErrForbidden); got != want || err != nil && !got {
				t.Errorf("%s of %s = %v, forbidden should be %t", call, user, err, want)
			}
		}
	}
}

// An administrator's examination finds nothing that it may not see; a teller's says so.
func TestExamineAsUser(t *testing.T) {
	_, as, authority := guarded(t)
	for user, want := range map[string]eventlog.Grade{"admin": eventlog.Fine, "teller": eventlog.Forbidden} {
		l, err := openAs(t, as(user, password, "&tlsCAFile="+url.PathEscape(authority)))
		if err != nil {
			t.Fatal(err)
		}
		found := examined(t, l)
		if found["read all"].Grade != want || found["append"].Grade != eventlog.Fine || found["leader"].Grade != eventlog.Fine {
			t.Errorf("%s: %+v", user, found)
		}
	}
}
