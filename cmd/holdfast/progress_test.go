package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"holdfast/eventlog"
)

// TestProgressWithoutATerminal: a line every ten seconds, with rate and time left.
func TestProgressWithoutATerminal(t *testing.T) {
	for _, tt := range []struct {
		name  string
		args  []string
		total uint64
		want  string
	}{
		{"lines", nil, 4000, "1000 of 4000 events, 100/s, 30s left\n2000 of 4000 events, 100/s, 20s left\n"},
		{"without a total", nil, 0, "1000 events, 100/s\n2000 events, 100/s\n"},
		{"JSON", []string{"--json"}, 4000, `{"progress":{"events":1000,"total":4000,"per_second":100,"seconds_left":30}}
{"progress":{"events":2000,"total":4000,"per_second":100,"seconds_left":20}}
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var stderr bytes.Buffer
				c := newCall(&program{stderr: &stderr, terminal: func(any) bool { return false }}, tt.args)
				p := c.startProgress(tt.total)
				synctest.Wait()
				p.at(1000)
				time.Sleep(10 * time.Second) // the bubble's own time
				synctest.Wait()
				p.at(2000)
				time.Sleep(19 * time.Second / 2)
				p.at(2000)
				time.Sleep(time.Second)
				synctest.Wait()
				p.stop()
				if stderr.String() != tt.want {
					t.Errorf("got\n%swant\n%s", &stderr, tt.want)
				}
			})
		})
	}
}

// TestProgressOnATerminal: a bar, which is taken away at the end.
func TestProgressOnATerminal(t *testing.T) {
	for _, total := range []uint64{0, 4000} {
		var stderr bytes.Buffer
		c := newCall(&program{stderr: &stderr, terminal: func(any) bool { return true }}, nil)
		p := c.startProgress(total)
		p.at(4000)
		p.stop()
		if strings.Contains(stderr.String(), "Error") {
			t.Errorf("got %q", &stderr)
		}
	}
}

// dense is a log that says that its positions are.
type dense struct{ eventlog.Log }

func (dense) DensePositions() {}

// TestHead: the number of events is found without reading them.
func TestHead(t *testing.T) {
	log, err := openLog(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "log.db"), creates)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if got, known, err := head(t.Context(), struct{ eventlog.Log }{log}); got != 0 || known || err != nil {
		t.Fatalf("head of a log that does not say that it is dense = %d, %v, %v", got, known, err)
	}
	for n := uint64(0); n < 40; n++ {
		if got, known, err := head(t.Context(), dense{log}); got != n || !known || err != nil {
			t.Fatalf("head = %d, %v, %v, want %d", got, known, err, n)
		}
		if _, err := log.Append(t.Context(), eventlog.StreamAppend{
			Stream: "s", At: n, Events: []eventlog.Event{{ID: uuid.New(), Type: "T"}},
		}); err != nil {
			t.Fatal(err)
		}
	}
}
