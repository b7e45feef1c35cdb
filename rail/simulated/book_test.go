package simulated_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/events"
	"holdfast/rail"
	"holdfast/rail/simulated"
)

// writeBook makes a file of the given content.
func writeBook(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "book.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// bookLine is a whole line, with its newline.
func bookLine(withdrawal string) string {
	return `{"time":"2026-01-02T12:00:00.000000Z","reference":"sim-` + withdrawal + `","withdrawal":"` + withdrawal +
		`","account":"acc-1","amount":"1","currency":"EUR","destination":"DE02","token":"t","attempt":1}` + "\n"
}

// withdrawals lists the withdrawals of a sound book, in its order.
func withdrawals(t *testing.T, path string) string {
	t.Helper()
	var ids []string
	for _, e := range allEntries(t, path) {
		ids = append(ids, string(e.Withdrawal))
	}
	return strings.Join(ids, " ")
}

func TestTornLastLine(t *testing.T) {
	whole := bookLine("w2")
	for _, n := range []int{1, 2, 5, len(`{"time":"`), 60, len(whole) - 2, len(whole) - 1} {
		for _, tt := range []struct{ before, torn, repaired string }{
			{"", "", "w3"},
			{bookLine("w1"), "w1", "w1 w3"},
		} {
			t.Run(fmt.Sprintf("%d bytes after %d", n, len(tt.before)), func(t *testing.T) {
				path := writeBook(t, tt.before+whole[:n])
				if got := withdrawals(t, path); got != tt.torn {
					t.Errorf("the torn book has %q, want %q", got, tt.torn)
				}
				r, err := simulated.Open(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if k, err := r.LookUp(t.Context(), "w2"); err != nil || k.Verdict != rail.VerdictUnknown {
					t.Errorf("LookUp of the torn line = %v, %v, want unknown", k, err)
				}
				if _, err := r.Send(t.Context(), payment("w3")); err != nil {
					t.Fatal(err)
				}
				if got := withdrawals(t, path); got != tt.repaired {
					t.Errorf("the repaired book has %q, want %q", got, tt.repaired)
				}
			})
		}
	}
}

func TestReadersKeepTheirPlaceAcrossARepair(t *testing.T) {
	path := writeBook(t, bookLine("w1")+bookLine("w2")+bookLine("torn")[:40])
	r, err := simulated.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen []events.WithdrawalID
	for e, err := range simulated.Entries(path) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Withdrawal)
		if _, err := r.Send(t.Context(), payment("after")); err != nil { // and no deadlock
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(seen); got != "[w1 w2]" {
		t.Errorf("the reader saw %s, want what was there when it started", got)
	}
	if got := withdrawals(t, path); got != "w1 w2 after after" {
		t.Errorf("the book has %q", got)
	}
}

func TestDamagedBook(t *testing.T) {
	long := strings.Replace(bookLine("w2"), "DE02", strings.Repeat("D", simulated.MaxLine), 1)
	for _, tt := range []struct {
		name, content string
		line          int
		reason        string
		opens         bool // Open looks at the first line and the end alone
	}{
		{"in the middle", bookLine("w1") + "{\n" + bookLine("w2"), 2, "it is not an entry: unexpected EOF", true},
		{"at the end, with a newline", bookLine("w1") + bookLine("w2")[:50] + "\n", 2, "it is not an entry: unexpected EOF", true},
		{"an empty line", bookLine("w1") + "\n" + bookLine("w2"), 2, "it is not an entry: EOF", true},
		{"a line too long", bookLine("w1") + long + bookLine("w3"), 2, "it is longer than 16384 bytes", true},
		{"an end too long", bookLine("w1") + long[:len(long)-1], 0, "it is longer than 16384 bytes", false},
		{"two on a line", bookLine("w1") + strings.Trim(bookLine("w2"), "\n") + bookLine("w3"), 2, "it goes on after the entry", true},
		{"a foreign text", "dear diary\n", 1, "it is not an entry: invalid character 'd' looking for beginning of value", false},
		{"a foreign text without newline", "dear diary", 0, "it is not the start of an entry", false},
		{"a foreign end", bookLine("w1") + "dear diary", 0, "it is not the start of an entry", false},
		{"foreign JSON", `{"level":"info"}` + "\n", 1, `it is not an entry: json: unknown field "level"`, false},
		{"a binary", "SQLite format 3\x00", 0, "it is not the start of an entry", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := writeBook(t, tt.content)
			_, err := simulated.Count(path)
			var damaged *simulated.Damaged
			if !errors.As(err, &damaged) || damaged.Line != tt.line || damaged.Reason != tt.reason || damaged.Path != path {
				t.Fatalf("Count = %v, want line %d: %s", err, tt.line, tt.reason)
			}
			where := fmt.Sprintf("line %d: ", tt.line)
			if tt.line == 0 {
				where = "the unfinished last line: "
			}
			if want := "simulated: " + path + " is not a sound book: " + where + tt.reason; err.Error() != want {
				t.Errorf("error = %s, want %s", err, want)
			}
			if _, err := simulated.Open(path, nil); errors.As(err, &damaged) == tt.opens {
				t.Errorf("Open = %v, want it to open: %v", err, tt.opens)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != tt.content {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

func TestDamagedEndIsNotAppendedTo(t *testing.T) {
	path := writeBook(t, "")
	r, err := simulated.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("dear diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *simulated.Damaged
	if _, err := r.Send(t.Context(), payment("w1")); !errors.As(err, &damaged) {
		t.Errorf("Send = %v, want *Damaged", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "dear diary" {
		t.Errorf("the file was changed to %q (%v)", got, err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	readOnly := filepath.Join(dir, "read-only")
	if err := os.WriteFile(readOnly, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	book := filepath.Join(dir, "book.jsonl")
	for _, tt := range []struct {
		name, path string
		opts       *simulated.Options
		want       string
	}{
		{"directory", dir, nil, "simulated: book " + dir + " is a directory"},
		{"pipe", fifo, nil, "simulated: book " + fifo + " is not a regular file"},
		{"no name", "", nil, "simulated: the book cannot be opened: open : no such file or directory"},
		{"no directory", filepath.Join(dir, "none", "book"), nil, "simulated: the book cannot be opened: open " + filepath.Join(dir, "none", "book") + ": no such file or directory"},
		{"read-only", readOnly, nil, "simulated: the book cannot be opened: open " + readOnly + ": permission denied"},
		{"negative latency", book, &simulated.Options{Latency: -1}, "simulated: latency (-1ns) and late (0s) must not be negative"},
		{"negative late", book, &simulated.Options{Late: -1}, "simulated: latency (0s) and late (-1ns) must not be negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "read-only" && os.Geteuid() == 0 {
				t.Skip("root may write to any file")
			}
			if _, err := simulated.Open(tt.path, tt.opts); err == nil || err.Error() != tt.want {
				t.Errorf("Open = %v, want %s", err, tt.want)
			}
		})
	}
	if _, err := simulated.Count(book); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Count without a book = %v, want fs.ErrNotExist", err)
	}
}

func TestReadersMayStop(t *testing.T) {
	path := writeBook(t, bookLine("w1")+bookLine("w1")+"{\n")
	for e, err := range simulated.Payments(path) {
		if err != nil || e.Withdrawal != "w1" {
			t.Fatalf("Payments = %v, %v", e, err)
		}
		break
	}
}

func TestCount(t *testing.T) {
	refused := strings.Replace(bookLine("w3"), `"reference":"sim-w3"`, `"refused":true,"reason":"no"`, 1)
	counts, err := simulated.Count(writeBook(t, bookLine("w1")+refused+bookLine("w2")+bookLine("w1")))
	if got := fmt.Sprint(counts); err != nil || got != "map[w1:2 w2:1]" {
		t.Errorf("Count = %s, %v, want map[w1:2 w2:1]", got, err)
	}
}
