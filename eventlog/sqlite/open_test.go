package sqlite_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	lib "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
)

// readElsewhere reads a file in another process, so that none of this process's locks on
// it are dropped.
func readElsewhere(t *testing.T, path string) []byte {
	t.Helper()
	data, err := exec.Command("cat", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// create makes a file with SQLite, past the engine.
func create(t *testing.T, path, script string) {
	t.Helper()
	conn, err := lib.OpenConn(path, lib.OpenReadWrite|lib.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteScript(conn, script, nil); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// filled makes a log of one event and returns its path.
func filled(t *testing.T) string {
	t.Helper()
	path := fresh(t)
	log := open(t, path, nil)
	if _, err := log.Append(t.Context(), single("s", 0)); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func single(stream string, at uint64) eventlog.StreamAppend {
	return eventlog.StreamAppend{Stream: stream, At: at, Events: []eventlog.Event{
		{ID: uuid.New(), Type: "Tested", Data: []byte(`{"n":1}`), Metadata: []byte(`{}`)}}}
}

// Each file that is not a usable log is refused with a reason, and not changed.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string) // makes what is at the path
		options sqlite.Options
		reason  string
	}{
		{"a directory", func(t *testing.T, path string) { os.Mkdir(path, 0o700) }, sqlite.Options{}, "is a directory"},
		{"text", func(t *testing.T, path string) { write(t, path, []byte("hello")) }, sqlite.Options{}, "not an SQLite file"},
		{"a long text", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("hello\n"), 2000)) },
			sqlite.Options{}, "not an SQLite file"},
		{"a spoilt header", func(t *testing.T, path string) {
			data := readElsewhere(t, filled(t))
			data[3] ^= 1
			write(t, path, data)
		}, sqlite.Options{}, "not an SQLite file"},
		{"another program's file", func(t *testing.T, path string) { create(t, path, "CREATE TABLE mine (x)") },
			sqlite.Options{}, "another program"},
		{"another program's marked file", func(t *testing.T, path string) { create(t, path, "PRAGMA application_id = 1; CREATE TABLE mine (x)") },
			sqlite.Options{}, "another program"},
		{"another program's file with a write-ahead log", func(t *testing.T, path string) {
			other := fresh(t)
			conn, err := lib.OpenConn(other) // with a write-ahead log
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := sqlitex.ExecuteTransient(conn, "CREATE TABLE mine (x)", nil); err != nil {
				t.Fatal(err)
			}
			write(t, path, readElsewhere(t, other))
			write(t, path+"-wal", readElsewhere(t, other+"-wal"))
		}, sqlite.Options{}, "another program"},
		{"a newer format", func(t *testing.T, path string) { newer(t, path) }, sqlite.Options{}, "newer version"},
		{"a newer format, to read", func(t *testing.T, path string) { newer(t, path) }, sqlite.Options{ReadOnly: true}, "newer version"},
		{"an older format than there ever was", func(t *testing.T, path string) {
			create(t, path, "PRAGMA application_id = 1215261796; CREATE TABLE mine (x)")
		}, sqlite.Options{}, "its format is 0"},
		{"our mark without our tables", func(t *testing.T, path string) {
			create(t, path, "PRAGMA application_id = 1215261796; PRAGMA user_version = 1; CREATE TABLE mine (x)")
		}, sqlite.Options{ReadOnly: true}, "tables of the log are missing"},
		{"nothing, but it must exist", func(*testing.T, string) {}, sqlite.Options{MustExist: true}, "no such file"},
		{"nothing, to read", func(*testing.T, string) {}, sqlite.Options{ReadOnly: true}, "no such file"},
		{"an empty file, but it must exist", func(t *testing.T, path string) { write(t, path, nil) }, sqlite.Options{MustExist: true}, "is empty"},
		{"an empty file, to read", func(t *testing.T, path string) { write(t, path, nil) }, sqlite.Options{ReadOnly: true}, "is empty"},
		{"an empty SQLite file, to read", func(t *testing.T, path string) { create(t, path, "CREATE TABLE x (y); DROP TABLE x") },
			sqlite.Options{ReadOnly: true}, "empty SQLite file"},
		{"a pipe", func(t *testing.T, path string) { syscall.Mkfifo(path, 0o600) }, sqlite.Options{}, "not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := fresh(t)
			c.prepare(t, path)
			before := contents(t, path)
			log, err := sqlite.Open(t.Context(), path, &c.options)
			if err == nil {
				log.Close()
			}
			wantRefused(t, err, path, c.reason)
			if diff := cmp.Diff(before, contents(t, path)); diff != "" {
				t.Errorf("refusing changed the folder (-before +after):\n%s", diff)
			}
		})
	}
}

func newer(t *testing.T, path string) {
	write(t, path, readElsewhere(t, filled(t)))
	raw(t, path, "PRAGMA user_version = 2")
}

// contents are the files beside a path and what is in them. The shared-memory file is
// left out: SQLite makes one to read a write-ahead log, and there is nothing in it that
// is not in the other files.
func contents(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), "-shm") {
			continue
		}
		files[entry.Name()] = ""
		if entry.Type().IsRegular() {
			files[entry.Name()] = string(readElsewhere(t, filepath.Join(filepath.Dir(path), entry.Name())))
		}
	}
	return files
}

func wantRefused(t *testing.T, err error, path, reason string) {
	t.Helper()
	var refused *eventlog.OpenError
	if !errors.As(err, &refused) {
		t.Fatalf("Open = %v, want an OpenError", err)
	}
	if errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("Open = %v, which invites to try again", err)
	}
	if refused.Path != path || !strings.Contains(refused.Reason, reason) || refused.Try == "" {
		t.Errorf("Open = %+v, want it to say %q about %q, and what to try", refused, reason, path)
	}
}

func TestOpenRefusesPaths(t *testing.T) {
	_, err := sqlite.Open(t.Context(), "", nil)
	wantRefused(t, err, "", "path is empty")

	missing := filepath.Join(t.TempDir(), "missing", "log.db")
	_, err = sqlite.Open(t.Context(), missing, nil)
	wantRefused(t, err, missing, "folder cannot be used")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v, want it to be fs.ErrNotExist too", err)
	}

	file := fresh(t)
	write(t, file, nil)
	_, err = sqlite.Open(t.Context(), filepath.Join(file, "log.db"), nil)
	wantRefused(t, err, filepath.Join(file, "log.db"), "cannot be looked at")

	for _, options := range []sqlite.Options{{BusyTimeout: -1}, {PollInterval: -1}, {Readers: -1}, {Readers: 65}} {
		if _, err := sqlite.Open(t.Context(), fresh(t), &options); err == nil || !strings.Contains(err.Error(), "option") {
			t.Errorf("Open with %+v = %v, want it to name the option", options, err)
		}
	}
}

// A log that another process keeps locked can be opened later, and the error says so.
func TestOpenLocked(t *testing.T) {
	path := filled(t)
	conn, err := lib.OpenConn(path, lib.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, "BEGIN IMMEDIATE", nil); err != nil {
		t.Fatal(err)
	}
	_, err = sqlite.Open(t.Context(), path, &sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	var refused *eventlog.OpenError
	if !errors.As(err, &refused) || !errors.Is(err, eventlog.ErrUnavailable) || !strings.Contains(refused.Reason, "keeps it locked") {
		t.Errorf("Open = %v, want an OpenError that is ErrUnavailable and says that it is locked", err)
	}
	if err := sqlitex.ExecuteTransient(conn, "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
	open(t, path, nil)
}

// An empty file, and an SQLite file in which there is nothing, are made a log.
func TestOpenCreates(t *testing.T) {
	for name, prepare := range map[string]func(path string){
		"nothing":           func(string) {},
		"empty file":        func(path string) { write(t, path, nil) },
		"empty SQLite file": func(path string) { create(t, path, "CREATE TABLE x (y); DROP TABLE x") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), ":memory: ?x#%41.db")
			prepare(path)
			log := open(t, path, nil)
			if _, err := log.Append(t.Context(), single("s", 0)); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		})
	}
}

// asNobody runs f with the file permissions of a user who owns nothing.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread keeps the changed identity, so it must end with the goroutine.
		runtime.LockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// chmod makes the folder and what is in it read-only for everybody but root.
func chmod(t *testing.T, path string, folder, file os.FileMode) {
	t.Helper()
	parent := filepath.Dir(path)
	for p, mode := range map[string]os.FileMode{path: file, parent: folder, filepath.Dir(parent): 0o755} {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Chmod(parent, 0o700) })
}

// What cannot be written is refused for writing and can be read with Options.ReadOnly.
func TestReadOnlyFiles(t *testing.T) {
	for _, c := range []struct {
		name         string
		folder, file os.FileMode
	}{
		{"file", 0o777, 0o444},
		{"folder", 0o555, 0o666},
		{"both", 0o555, 0o444},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filled(t)
			chmod(t, path, c.folder, c.file)
			asNobody(t, func() {
				log, err := sqlite.Open(t.Context(), path, nil)
				if err == nil {
					log.Close()
				}
				wantRefused(t, err, path, "read-only")
				log, err = sqlite.Open(t.Context(), path, &sqlite.Options{ReadOnly: true, Readers: 1})
				if err != nil {
					t.Errorf("Open for reading: %v", err)
					return
				}
				defer log.Close()
				n := 0
				for _, err := range log.ReadAll(t.Context(), eventlog.Start) {
					if err != nil {
						t.Errorf("ReadAll: %v", err)
					}
					n++
				}
				if n != 1 {
					t.Errorf("read %d events, want 1", n)
				}
			})
		})
	}
}

func TestReadOnly(t *testing.T) {
	path := fresh(t)
	writing := open(t, path, nil)
	if _, err := writing.Append(t.Context(), single("s", 0)); err != nil {
		t.Fatal(err)
	}
	reading := open(t, path, &sqlite.Options{ReadOnly: true})
	if _, err := reading.Append(t.Context(), single("s", 1)); !errors.Is(err, eventlog.ErrReadOnly) || errors.Is(err, eventlog.ErrNotExecuted) {
		t.Errorf("Append = %v, want ErrReadOnly", err)
	}
	// What the other log commits is seen, also by one who waits.
	for recorded, err := range reading.Follow(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if recorded.Position == 3 {
			break
		}
		if _, err := writing.Append(t.Context(), single("s", uint64(recorded.Position))); err != nil {
			t.Fatal(err)
		}
	}
	if err := reading.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := reading.Append(t.Context(), single("s", 1)); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("Append = %v, want ErrClosed", err)
	}
}
