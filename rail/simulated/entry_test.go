package simulated_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"holdfast/rail"
	"holdfast/rail/simulated"
)

func TestEntryIsItsLine(t *testing.T) {
	line := strings.TrimSuffix(bookLine("w1"), "\n")
	var e simulated.Entry
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(e); err != nil || string(got) != line {
		t.Errorf("Marshal = %s, %v, want %s", got, err, line)
	}
	if _, err := json.Marshal(simulated.Entry{}); err == nil {
		t.Error("Marshal of the zero Entry = nil, want an error")
	}
}

func TestEntryRefuses(t *testing.T) {
	line := strings.TrimSuffix(bookLine("w1"), "\n")
	for _, tt := range []struct{ name, old, new, want string }{
		{"a time without microseconds", "12:00:00.000000Z", "12:00:00Z", "is not in the form"},
		{"a time elsewhere", "00.000000Z", "00.000000+01:00", "is not in the form"},
		{"a time before there were any", "2026", "0001", "time is not between"},
		{"an amount that is a number", `"1"`, `1`, "amount"},
		{"an amount out of form", `"1"`, `"1.0"`, "canonical"},
		{"no amount", `"amount":"1",`, ``, "amount is missing"},
		{"a null amount", `"amount":"1"`, `"amount":null`, "amount is missing"},
		{"no withdrawal", `"withdrawal":"w1",`, ``, "withdrawal is missing"},
		{"no reference", `"reference":"sim-w1",`, ``, "reference is missing"},
		{"no attempt", `,"attempt":1`, ``, "attempt is 0"},
		{"a negative attempt", `"attempt":1`, `"attempt":-1`, "attempt is -1"},
		{"a long reference", `sim-w1`, strings.Repeat("x", rail.MaxReference+1), "reference is longer than 255 bytes"},
		{"a reason without a refusal", `"token"`, `"reason":"no","token"`, "is not refused"},
		{"a refusal with a reference", `"token"`, `"refused":true,"reason":"no","token"`, "has a reference"},
		{"a refusal without a reason", `"reference":"sim-w1"`, `"refused":true`, "reason is missing"},
		{"a long reason", `"reference":"sim-w1"`, `"refused":true,"reason":"` + strings.Repeat("x", rail.MaxReason+1) + `"`, "reason is longer than 1024 bytes"},
		{"an unknown field", `"token"`, `"colour":"red","token"`, `unknown field "colour"`},
		{"what is not UTF-8", `DE02`, "\xff", "it is not UTF-8"},
		{"something after it", `"attempt":1}`, `"attempt":1} {}`, "it goes on after the entry"},
		{"a list", line, `[]`, "it is not an entry"},
		{"null", line, `null`, `time "" is not in the form`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changed := strings.Replace(line, tt.old, tt.new, 1)
			if changed == line {
				t.Fatalf("the line has no %q", tt.old)
			}
			var e simulated.Entry
			if err := e.UnmarshalJSON([]byte(changed)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("UnmarshalJSON = %v, want an error that says %q", err, tt.want)
			}
			if e != (simulated.Entry{}) {
				t.Errorf("the entry is %v after an error, want it left alone", e)
			}
		})
	}
}

// FuzzEntry checks that what is read as an entry is written so that it reads the same,
// on one line.
func FuzzEntry(f *testing.F) {
	line := strings.TrimSuffix(bookLine("w1"), "\n")
	f.Add([]byte(line))
	f.Add([]byte(strings.Replace(line, `"reference":"sim-w1"`, `"refused":true,"reason":"no\n\u2028"`, 1)))
	f.Add([]byte(line[:len(line)-1]))
	f.Add([]byte(line + line))
	f.Add([]byte(`null`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, second simulated.Entry
		if first.UnmarshalJSON(b) != nil {
			return
		}
		written, err := first.MarshalJSON()
		if err != nil {
			if strings.Contains(err.Error(), "a line has at most") && len(b) > simulated.MaxLine/6 {
				return // escapes made it longer
			}
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if bytes.ContainsRune(written, '\n') {
			t.Fatalf("an entry of two lines: %q", written)
		}
		if err := second.UnmarshalJSON(written); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if first != second {
			t.Fatalf("%+v was read, and is %+v once written and read again", first, second)
		}
	})
}
