package engines_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"holdfast/eventlog"
	"holdfast/eventlog/engines"
)

// No URL makes a panic, every refusal says what is wrong and with what, and a password is
// never shown. Nothing is opened on a server, and no file is made.
func FuzzURL(f *testing.F) {
	for _, url := range []string{"sqlite:", "sqlite:no/such/file.db", "sqlite://host/file", "sqlite:a?mode=ro", "memory:", "memory:x", "esdb:", "esdb://u:p@h:1",
		"sqlite", "", ":", "postgres://u:secret@h/db", "sqlite:\x00", "sqlite:.", "SQLITE:x", "sqlite:esdb://u:secret@h"} {
		f.Add(url, "secret")
	}
	f.Fuzz(func(t *testing.T, address, password string) {
		if shown := engines.Redacted("esdb://user:" + url.PathEscape(password) + "@host:2113"); shown != "esdb://user:***@host:2113" {
			t.Errorf("the password %q is shown: %s", password, shown)
		}
		if strings.HasPrefix(address, "esdb") {
			return // kurrent has a test of its own for those
		}
		log, err := engines.Open(t.Context(), address, &engines.Options{ReadOnly: true, MustExist: true})
		if err == nil {
			t.Errorf("%q was opened", address)
			log.Close()
			return
		}
		var refused *eventlog.OpenError
		if !errors.As(err, &refused) || refused.Reason == "" || refused.Try == "" || !strings.Contains(address+"\x00", refused.Path) && refused.Path != engines.Redacted(address) {
			t.Errorf("%q: %#v", address, err)
		}
	})
}
