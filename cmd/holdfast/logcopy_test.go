package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/eventlog/engines"
	"holdfast/events"
	"holdfast/internal/kurrentnode"
	"holdfast/rail"
	"holdfast/submissions"
)

// TestCopyKilled kills a real process that copies a log to a cluster and moves the ledger
// there: at its first append, in the middle, when the source is sealed, and when the target
// has just become the ledger. Never do both act, the next run goes on, and in the end the
// cluster has every event.
func TestCopyKilled(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	node := kurrentnode.Keep(t)
	cluster := node.URL()
	source := opened(t, p.log, nil)
	pay(t, source, 60)

	// copies runs the process. Where it is to be killed, kill says when by calling die, which
	// returns when that is done.
	copies := func(kill func(die func()), flags ...string) (stdout string) {
		t.Helper()
		cmd, err := self(t.Context(), append([]string{"log", "copy", "--from", p.log, "--to", cluster, "--actor", "ann", "--json"}, flags...)...)
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		now, dead := make(chan struct{}), make(chan struct{})
		if kill != nil {
			kill(sync.OnceFunc(func() {
				close(now)
				<-dead
			}))
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(dead)
			select {
			case <-now:
				cmd.Process.Kill()
			case <-ended:
			}
		}()
		err = cmd.Wait()
		close(ended)
		<-dead
		node.Lose(nil)
		node.On(nil, nil)
		if killed := wasKilled(cmd); killed != (kill != nil) || !killed && err != nil {
			t.Fatalf("%v: %v\n%s%s", flags, err, &out, &errs)
		}
		return out.String()
	}
	act := func(when string, onSource, onTarget bool) {
		t.Helper()
		for log, want := range map[string]bool{p.log: onSource, cluster: onTarget} {
			r := p.run(t, "outcome", "--log", log, "--key", "k-0")
			if got := r.exit == 0; got != want || !got && r.exit != 8 {
				t.Fatalf("%s: commands act on %s: %t, want %t\n%s", when, log, got, want, r)
			}
		}
	}
	atAppend := func(n int) func(func()) {
		return func(die func()) {
			node.On(nil, nil) // which begins to count anew
			node.Lose(func(i int) error {
				if i >= n {
					die()
				}
				return nil
			})
		}
	}

	for _, n := range []int{0, 1, 40, 90} {
		copies(atAppend(n))
		act(fmt.Sprintf("killed at append %d", n), true, false)
	}
	if out := copies(nil); !strings.Contains(out, `"events":300,`) {
		t.Errorf("it printed %s", out)
	}
	act("copied", true, false)
	copies(func(die func()) {
		node.On(nil, func(_ int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
			if custody, _, err := submissions.Custody(t.Context(), source); err == nil && custody.Act() != nil {
				die()
			}
			return node.Streams.Read(o, r)
		})
	}, "--cut-over")
	act("killed when the source was sealed", false, false)
	copies(atAppend(0), "--cut-over") // the only append that is left is CopyCompleted
	act("killed when the target had become the ledger", false, true)
	if out := copies(nil, "--cut-over"); !strings.Contains(out, `"already":true`) {
		t.Errorf("it printed %s", out)
	}
	sameEvents(t, source, opened(t, cluster, &engines.Options{ReadOnly: true}))
}

func opened(t *testing.T, url string, o *engines.Options) eventlog.Log {
	t.Helper()
	log, err := engines.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// pay requests and pays that many withdrawals, under the keys k-0, k-1 and so on: five
// events each.
func pay(t *testing.T, log eventlog.Log, n int) {
	t.Helper()
	ledger, err := submissions.New(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		w, err := ledger.Request(t.Context(), submissions.Request{Account: "alice", Reference: fmt.Sprint(i), Amount: "1", Currency: "EUR", Destination: "DE89"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ledger.Submit(t.Context(), events.RequestKey(fmt.Sprintf("k-%d", i)), w.ID, func(context.Context, rail.Payment) (rail.Receipt, error) {
			return rail.Receipt{Reference: "tx"}, nil
		}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// sameEvents checks that every stream of a log, but for its custody stream, is in another,
// byte for byte.
func sameEvents(t *testing.T, a, b eventlog.Log) {
	t.Helper()
	checked := map[string]bool{events.CustodyStream: true}
	for r, err := range a.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if checked[r.Stream] {
			continue
		}
		checked[r.Stream] = true
		if want, got := stored(t, a, r.Stream), stored(t, b, r.Stream); want != got {
			t.Errorf("%s is not the same\n%s\n%s", r.Stream, want, got)
		}
	}
}

func stored(t *testing.T, log eventlog.Log, stream string) string {
	t.Helper()
	var all strings.Builder
	for r, err := range log.ReadStream(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%d %s %s %s %s\n", r.Revision, r.ID, r.Type, r.Data, r.Metadata)
	}
	return all.String()
}

// TestCopyOfALogInUse copies while an attempt is running: the ledger is not moved from
// under it, and nobody is told that it was.
func TestCopyOfALogInUse(t *testing.T) {
	t.Parallel()
	p := newTestProgram(t)
	id := p.requestOne(t)
	p.openRail = func(q *program, spec, fault string) (rail.Rail, error) {
		r, err := openRail(q, spec, fault)
		return meanwhile{r, func() {
			wantSaid(t, p.run(t, "log", "copy", "--from", p.log, "--to", p.log+".new", "--cut-over"), 8,
				`key "k" may be sending withdrawal `+id)
		}}, err
	}
	if r := p.run(t, "submit", "--key", "k", "--withdrawal", id); r.exit != 0 {
		t.Errorf("%s", r)
	}
	if r := p.run(t, "doctor", "--log", p.log+".new"); !strings.Contains(r.stdout, string(eventlog.Risky)+": ledger: the log is being copied into") {
		t.Errorf("%s", r)
	}
	if r := p.run(t, "log", "copy", "--from", p.log, "--to", p.log+".new", "--cut-over"); r.exit != 0 || !strings.Contains(r.stdout, "Commands act on "+p.log+".new\n") {
		t.Errorf("%s", r)
	}
	r := p.run(t, "submit", "--key", "k", "--withdrawal", id)
	if r.exit != 8 || p.left(t, id) != 1 || !strings.Contains(r.stderr, (&aggregate.NoLedger{Keeper: aggregate.Gone, Other: p.log + ".new"}).Error()) {
		t.Errorf("%s", r)
	}
}
