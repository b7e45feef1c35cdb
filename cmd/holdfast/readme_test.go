package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs what the README tells a newcomer to paste, as it is printed, in a shell
// without a terminal.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(text), "## Five minutes with the command line")
	lines, _, _ = strings.Cut(lines, "\n## ")
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(lines, -1) {
		script.WriteString(block[1])
	}
	build := "go build -o holdfast ./cmd/holdfast\n"
	if !strings.Contains(script.String(), build) {
		t.Errorf("the README does not build the command by %q", build)
	}
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, programName)); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(script.String(), build, "", 1))
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	for _, want := range []string{
		"This is a replay", "\nHolder: req-1\n", "(outcome-unknown)", "\nunknown ", "Rail says:         sent as sim-",
		"who looked\n", "OutcomeResolved", "Clean: ",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if strings.Contains(string(out), "(invalid-request)") || strings.Count(string(out), "Error:") != 2 || err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
}
