package simulated_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/rail/simulated"
)

// Whatever a file holds, it is read as a book up to the first line that no book has, and
// that is said to be damage. A file that is taken for a book keeps every line when the
// next payment is booked, and has one more.
func FuzzBook(f *testing.F) {
	for _, content := range []string{"", "\n", bookLine("w1"), bookLine("w1") + bookLine("w2"), bookLine("w1") + bookLine("w2")[:40], bookLine("w1") + "\n",
		bookLine("w1") + "null\n" + bookLine("w2"), "\x00\x00", strings.TrimSuffix(bookLine("w1"), "\n"), "SQLite format 3\x00", bookLine("w1") + "\r\n"} {
		f.Add([]byte(content))
	}
	path := filepath.Join(f.TempDir(), "book.jsonl")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := read(path)
		var damaged *simulated.Damaged
		if err != nil && (!errors.As(err, &damaged) || damaged.Reason == "") {
			t.Fatalf("%q: %v", content, err)
		}
		r, opening := simulated.Open(path, nil)
		if opening != nil {
			if !errors.As(opening, &damaged) {
				t.Fatalf("%q: %v", content, opening)
			}
			if kept, _ := os.ReadFile(path); string(kept) != string(content) {
				t.Fatalf("%q was refused, and is %q now", content, kept)
			}
			return
		}
		if err != nil {
			return // only its first line and its end are looked at
		}
		if _, err := r.Send(t.Context(), payment("w9")); err != nil {
			t.Fatalf("%q: %v", content, err)
		}
		after, err := read(path)
		if err != nil || len(after) != len(before)+1 {
			t.Fatalf("%q had %d entries, and after a payment %d, %v", content, len(before), len(after), err)
		}
		for i := range before {
			if before[i] != after[i] {
				t.Fatalf("%q: entry %d was %+v, and is %+v", content, i, before[i], after[i])
			}
		}
	})
}

func read(path string) (all []simulated.Entry, err error) {
	for e, err := range simulated.Entries(path) {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}
