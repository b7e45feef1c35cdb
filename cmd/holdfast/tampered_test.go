package main

import (
	"path/filepath"
	"strings"
	"testing"

	"holdfast/events"
)

// A stream that cannot be found by its name any more is taken for one that never was: the
// same reference begins anew, and is paid again. verify finds it before that, and after.
func TestVerifyFindsWhatCannotBeFoundByName(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a name with another character": "UPDATE streams SET name = replace(name, 'withdrawal-w', 'withdrawal-x') WHERE name = 'WITHDRAWAL';",
		"another hash":                  "UPDATE streams SET hash = hash + 1 WHERE name = 'WITHDRAWAL';",
		"another's name":                "UPDATE streams SET name = 'KEY', hash = 7 WHERE name = 'WITHDRAWAL';",
		"no name":                       "DELETE FROM streams WHERE name = 'WITHDRAWAL';",
		"another number":                "UPDATE streams SET first = 99 WHERE name = 'WITHDRAWAL';",
		"an earlier one's name":         "UPDATE streams SET name = 'WITHDRAWAL', hash = 7 WHERE name = 'UNCLAIMED';",
		"a key with another hash":       "UPDATE streams SET hash = hash + 1 WHERE name = 'KEY';",
		"a key without a name":          "DELETE FROM streams WHERE name = 'KEY';",
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestProgram(t)
			id := p.requestOne(t)
			if r := p.run(t, "submit", "--key", "k", "--withdrawal", id); r.exit != 0 {
				t.Fatal(r)
			}
			unclaimed := p.run(t, "request", "--account", "alice", "--reference", "order-2", "--amount", "1", "--currency", "EUR", "--destination", "DE89").fact("Withdrawal")
			script = strings.NewReplacer("UNCLAIMED", "withdrawal-"+unclaimed, "WITHDRAWAL", "withdrawal-"+id, "KEY", events.RequestKey("k").Stream(events.DefaultTenant)).Replace(script)
			drop := "DROP TRIGGER streams_no_update; DROP TRIGGER streams_no_delete;"
			if err := runSQL(filepath.Join(p.dir, "log.db"), drop+script); err != nil {
				t.Fatal(err)
			}
			if r := p.run(t, "verify"); r.exit != 7 {
				t.Errorf("before anything else: %s", r)
			}
			// Nobody has looked, and it goes on.
			p.run(t, "request", "--account", "alice", "--reference", "order-1", "--amount", "10.25", "--currency", "EUR", "--destination", "DE89")
			p.run(t, "submit", "--key", "k2", "--withdrawal", id)
			if r := p.run(t, "verify"); r.exit != 7 {
				t.Errorf("after it left %d times: %s", p.left(t, id), r)
			}
		})
	}
}
