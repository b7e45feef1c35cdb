package sqlite

import (
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
)

const (
	// applicationID marks the file as ours: "Hold" in ASCII.
	applicationID = 0x486F6C64

	// schemaVersion is the user_version of the files that this package writes.
	schemaVersion = 1

	// pageSize is the size of a database page in bytes.
	pageSize = 4096
)

// schema is what is in a new file, beside the rules. A stream's number is the position of its first
// event, so the index over the events grows at its end and only the small index over
// hashes of names is written at random places; random pages are what fills the
// write-ahead log. The hash only finds candidates: the name decides, so collisions
// are harmless.
const schema = `
CREATE TABLE events (
	position INTEGER PRIMARY KEY,
	stream   INTEGER NOT NULL,
	revision INTEGER NOT NULL,
	id       BLOB NOT NULL,
	type     TEXT NOT NULL,
	data     BLOB NOT NULL,
	metadata BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_by_stream ON events (stream, revision);

CREATE TABLE streams (
	first INTEGER PRIMARY KEY,
	hash  INTEGER NOT NULL,
	name  TEXT NOT NULL
) STRICT;

CREATE INDEX streams_by_hash ON streams (hash);

CREATE VIEW log AS
SELECT e.position, s.name AS stream, e.revision, lower(hex(e.id)) AS id, e.type,
	CAST(e.data AS TEXT) AS data, CAST(e.metadata AS TEXT) AS metadata
FROM events AS e LEFT JOIN streams AS s ON s.first = e.stream
ORDER BY e.position;
`

// rules keep every program that opens the file from updating and deleting what is in it.
// REPLACE goes past them: it deletes the row that is in its way without telling a trigger
// of it. A rule before each insertion would look for such a row, and makes appends some 12 %
// slower, which guards against nobody: whoever may write the file may take its rules out.
// Verification finds what was replaced.
const rules = `
CREATE TRIGGER IF NOT EXISTS events_no_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are never changed: the log is append-only'); END;

CREATE TRIGGER IF NOT EXISTS events_no_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are never deleted: the log is append-only'); END;

CREATE TRIGGER IF NOT EXISTS streams_no_update BEFORE UPDATE ON streams
BEGIN SELECT RAISE(ABORT, 'streams are never changed: the log is append-only'); END;

CREATE TRIGGER IF NOT EXISTS streams_no_delete BEFORE DELETE ON streams
BEGIN SELECT RAISE(ABORT, 'streams are never deleted: the log is append-only'); END;
`

// ruleNames are the names of the rules.
func ruleNames() []string {
	return []string{"events_no_update", "events_no_delete", "streams_no_update", "streams_no_delete"}
}

// missingRules returns the names of the rules that a file does not have.
func missingRules(conn *sqlite.Conn) ([]string, error) {
	stmt, _, err := conn.PrepareTransient("SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = ?")
	if err != nil {
		return nil, err
	}
	defer stmt.Finalize()
	var missing []string
	for _, name := range ruleNames() {
		stmt.BindText(1, name)
		there, err := stmt.Step()
		if err != nil {
			return nil, err
		}
		if !there {
			missing = append(missing, name)
		}
		if err := stmt.Reset(); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// createSchema makes an empty database a log. It must run in a write transaction.
func createSchema(conn *sqlite.Conn) error {
	marks := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, schemaVersion)
	return execute(conn, schema+rules+marks)
}

// execute runs statements that have no parameters and whose rows do not matter.
func execute(conn *sqlite.Conn, script string) error {
	for script = strings.TrimSpace(script); script != ""; {
		stmt, rest, err := conn.PrepareTransient(script)
		if err != nil {
			return err
		}
		for row := true; row && err == nil; {
			row, err = stmt.Step()
		}
		stmt.Finalize()
		if err != nil {
			return err
		}
		script = strings.TrimSpace(script[len(script)-rest:])
	}
	return nil
}

// identity is what a file says it is.
type identity struct {
	application, version, objects int64
}

// identify reads what the file says it is, in one statement, so that a file that another
// process is making a log of just now is seen either before that or after.
func identify(conn *sqlite.Conn) (id identity, err error) {
	stmt, _, err := conn.PrepareTransient("SELECT (SELECT count(*) FROM sqlite_schema), application_id, user_version " +
		"FROM pragma_application_id, pragma_user_version")
	if err != nil {
		return id, err
	}
	defer stmt.Finalize()
	if _, err := stmt.Step(); err != nil {
		return id, err
	}
	return identity{objects: stmt.ColumnInt64(0), application: stmt.ColumnInt64(1), version: stmt.ColumnInt64(2)}, nil
}

// empty reports whether nobody has made anything of the file yet.
func (id identity) empty() bool {
	return id.application == 0 && id.version == 0 && id.objects == 0
}
