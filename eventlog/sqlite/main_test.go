package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"holdfast/eventlog"
	"holdfast/eventlog/sqlite"
)

// childVariable, if set, makes the test binary a child process that appends: its value
// is "path stream-prefix appends shared".
const childVariable = "HOLDFAST_SQLITE_TEST_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childVariable); job != "" {
		if err := appendAsChild(strings.Fields(job)); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// appendAsChild appends to a stream of its own and now and then to one that all children
// share, and prints "stream revision position id" for everything acknowledged. It waits
// for a line on standard input before it starts.
func appendAsChild(job []string) error {
	path, own, shared := job[0], job[1], job[3]
	appends, err := strconv.Atoi(job[2])
	if err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	ctx := context.Background()
	log, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	next := map[string]uint64{}
	for i := 0; i < appends; {
		stream := own
		if i%5 == 4 {
			stream = shared
		}
		e := eventlog.Event{ID: uuid.New(), Type: "Tested", Data: bytes.Repeat([]byte(own), 30)}
		position, err := log.Append(ctx, eventlog.StreamAppend{Stream: stream, At: next[stream], Events: []eventlog.Event{e}})
		var conflict *eventlog.Conflict
		if errors.As(err, &conflict) {
			next[stream] = *conflict.Actual
			continue
		}
		if err != nil {
			return err
		}
		fmt.Printf("%s %d %d %s\n", stream, next[stream], position, e.ID)
		next[stream]++
		i++
	}
	return log.Close()
}

// child is a process that appends.
type child struct {
	cmd    *exec.Cmd
	start  io.WriteCloser
	output *bufio.Scanner
	errors bytes.Buffer
}

func startChild(t *testing.T, path, own string, appends int, shared string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %s", childVariable, path, own, appends, shared))
	c.cmd.Stderr = &c.errors
	var err error
	if c.start, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.output = bufio.NewScanner(output)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// begin lets the child start.
func (c *child) begin(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c.start, "go\n"); err != nil {
		t.Fatal(err)
	}
}

// acknowledged is one line that a child printed.
type acknowledged struct {
	stream             string
	revision, position uint64
	id                 string
}

// next reads one acknowledged append; ok is false when the child has printed its last.
func (c *child) next(t *testing.T) (a acknowledged, ok bool) {
	t.Helper()
	if !c.output.Scan() {
		return a, false
	}
	if _, err := fmt.Sscanf(c.output.Text(), "%s %d %d %s", &a.stream, &a.revision, &a.position, &a.id); err != nil {
		// A child that was killed may have printed half of a line.
		return a, false
	}
	return a, len(a.id) == 36
}

// wantAcknowledged fails the test unless everything acknowledged is in the log, and the
// log has no gap.
func wantAcknowledged(t *testing.T, log eventlog.Log, all []acknowledged) {
	t.Helper()
	stored := map[uint64]eventlog.Recorded{}
	revisions := map[string]uint64{}
	for recorded, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatalf("ReadAll: %v", err)
		}
		if recorded.Revision != revisions[recorded.Stream] {
			t.Fatalf("stream %q has revision %d where %d should be", recorded.Stream, recorded.Revision, revisions[recorded.Stream])
		}
		revisions[recorded.Stream]++
		stored[uint64(recorded.Position)] = recorded
	}
	for _, a := range all {
		got, ok := stored[a.position]
		if !ok || got.Stream != a.stream || got.Revision != a.revision || got.ID.String() != a.id {
			t.Errorf("%+v was acknowledged; at that position there is %+v", a, got)
		}
	}
}
