package main

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/kurrentnode"
	"holdfast/internal/shell"
)

// TestDemoOnKurrentDB tells the demo's story on a KurrentDB node and on a file: they are the
// same line by line, and end the same, apart from names that are new each time.
func TestDemoOnKurrentDB(t *testing.T) {
	t.Parallel()
	var told [2]string
	var telling sync.WaitGroup
	file := newTestProgram(t)
	for i, url := range []string{file.log, kurrentnode.Keep(t).URL()} {
		p := newTestProgram(t)
		telling.Go(func() {
			r := p.run(t, "demo", "--log", url)
			if r.exit != 0 || !strings.HasSuffix(r.stdout, "\nEvery step was as told.\n") {
				t.Errorf("on %s: %s", url, r)
			}
			told[i] = withoutNames(strings.ReplaceAll(strings.ReplaceAll(r.stdout, shell.Quote(url), url), url, "LOG"))
		})
	}
	telling.Wait()
	if diff := cmp.Diff(strings.Split(told[0], "\n"), strings.Split(told[1], "\n")); diff != "" {
		t.Errorf("the story on a file (-) and on KurrentDB (+):\n%s", diff)
	}
}

// withoutNames takes out of the demo's story what is another each time: ids, references of
// the rail, times, the names' suffix, the rail's book, who wins the race. Nor does it keep
// how many events there are: a loser's reservation of its key is not in the log where it
// went together with the claim.
func withoutNames(story string) string {
	for _, r := range [][2]string{
		{`/\S*/book\.jsonl`, "BOOK"},
		{`\b((?:order|req|req-of-client)-\d+[a-z]?)-[a-z0-9]{8}\b`, "$1"},
		{`\breq-7(?:-\d)?-[a-z0-9]{8}\b|(won: |Holder: )req-7-\d\S*`, "${1}RACER"},
		{`\bw[a-z2-7]{32}\b`, "WITHDRAWAL"},
		{`\bsim-\w+`, "SIM"},
		{`\d{4}-\d\d-\d\dT[\d:.]+Z`, "TIME"},
		{`\(in [0-9msh]+\)|(unknown  )\d+s`, "${1}AGE"},
		{`(--confirm )\S+`, "${1}TOKEN"},
		{`Clean: \d+ events in \d+ streams`, "Clean: N events in N streams"},
	} {
		story = regexp.MustCompile(r[0]).ReplaceAllString(story, r[1])
	}
	return story
}
