package aggregate_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/aggregate"
)

var update = flag.Bool("update", false, "write the golden files")

// E: one table. Its golden file is what callers may rely on.
func TestCodes(t *testing.T) {
	var b strings.Builder
	seen := map[aggregate.Code]bool{}
	for _, c := range aggregate.Codes() {
		fmt.Fprintf(&b, "%-20s http %d  exit %d  %-5s  %s\n", c.Code, c.HTTPStatus, c.ExitCode, c.Level, c.Title)
		if seen[c.Code] {
			t.Errorf("%s is in the table twice", c.Code)
		}
		seen[c.Code] = true
		if c.Code.Info() != c {
			t.Errorf("%s finds another row", c.Code)
		}
	}
	const golden = "testdata/codes.txt"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the table has changed; it is a contract. Got:\n%s", b.String())
	}
}

func TestInfoOfAnUnknownCode(t *testing.T) {
	if got := aggregate.Code("no such").Info().Code; got != aggregate.CodeDamaged {
		t.Errorf("got %s", got)
	}
}
