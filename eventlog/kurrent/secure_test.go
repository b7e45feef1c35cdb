package kurrent

import (
	"errors"
	"strings"
	"testing"

	"holdfast/eventlog"
	"holdfast/internal/kurrentnode"
)

// TLS with an authority of one's own, and users with passwords, end to end. A password may
// have any character.
func TestSecuredServer(t *testing.T) {
	t.Parallel()
	const odd = "p@ss:w/rd?%&#"
	n := kurrentnode.KeepSecure(t, map[string]string{kurrentnode.Admin: odd, "bob": "builder"})
	l, err := Open(t.Context(), n.URLFor(kurrentnode.Admin, odd), brief())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Append(t.Context(), tested("s", 0, 2)); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, l, "s"); len(got) != 2 {
		t.Errorf("the stream has %v", got)
	}
	if err := first(l.ReadAll(t.Context(), eventlog.Start)); err != nil {
		t.Errorf("ReadAll = %v", err)
	}
	found := examined(t, l)
	for _, check := range []string{"leader", "append", "read all", "retention"} {
		if found[check].Grade != eventlog.Fine {
			t.Errorf("%s: %+v", check, found[check])
		}
	}

	for name, url := range map[string]string{
		"a wrong password": n.URLFor(kurrentnode.Admin, "guess"),
		"an unknown user":  n.URLFor("mallory", odd),
	} {
		_, err := Open(t.Context(), url, &Options{Patience: 200e6})
		var refused *eventlog.OpenError
		if !errors.As(err, &refused) || !errors.Is(err, eventlog.ErrForbidden) {
			t.Errorf("%s: Open = %v, want that it is forbidden", name, err)
		}
	}

	// A user who may not read all streams cannot use a log, and is told so.
	bob, err := Open(t.Context(), n.URLFor("bob", "builder"), brief())
	if err == nil {
		defer bob.Close()
		err = first(bob.ReadAll(t.Context(), eventlog.Start))
		if grade := examined(t, bob)["read all"].Grade; grade != eventlog.Forbidden {
			t.Errorf("read all: %s", grade)
		}
	}
	if !errors.Is(err, eventlog.ErrForbidden) {
		t.Errorf("a user who may not read all = %v", err)
	}

	// A node for which somebody else vouches is not spoken to.
	other := kurrentnode.KeepSecure(t, map[string]string{kurrentnode.Admin: odd})
	impostor := other.URLFor(kurrentnode.Admin, odd)
	own := n.URLFor(kurrentnode.Admin, odd)
	crossed := impostor[:len(impostor)-len(query(impostor))] + query(own)
	if _, err := Open(t.Context(), crossed, &Options{Patience: 200e6}); err == nil {
		t.Error("a node with a certificate of another authority is taken")
	}
}

// query is the part of a URL from the question mark on.
func query(url string) string { return url[strings.IndexByte(url, '?'):] }
