package shell_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/shell"
)

func ExampleJoin() {
	fmt.Println(shell.Join("holdfast", "outcome", "--key", "it's req-1", "--log", "sqlite:a.db"))
	// Output: holdfast outcome --key 'it'\''s req-1' --log sqlite:a.db
}

// TestJoinMeansTheSame asks a real shell what a joined line means to it.
func TestJoinMeansTheSame(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	words := []string{"", " ", "'", "''", `"`, `\`, "$HOME", "`id`", "a b", "*", "~", "#", "!", "a\nb", "é", "-n", "x=1", ";", "&", "|", "<>", "(", "[", "{a,b}", "sim-1"}
	line := shell.Join(words...)
	out, err := exec.Command(sh, "-c", `for word in `+line+`; do printf '%s\0' "$word"; done`).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if !slices.Equal(got, words) {
		t.Errorf("the shell read %q, want %q", got, words)
	}
}
