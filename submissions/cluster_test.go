package submissions_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/eventlog/kurrent"
	"holdfast/events"
	"holdfast/internal/kurrentnode"
	"holdfast/rail"
	"holdfast/submissions"
)

// clustered opens a log on a cluster in this process.
func clustered(t *testing.T, url string) eventlog.Log {
	t.Helper()
	log, err := kurrent.Open(t.Context(), url, &kurrent.Options{Unseen: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// once returns a hook that does something before the first append that has an event of a
// type.
func once(eventType string, do func()) func([]string) error {
	done := false
	return func(types []string) error {
		if !done && slices.Contains(types, eventType) {
			done = true
			do()
		}
		return nil
	}
}

// A5, on a cluster: who loses to a claim that most nodes do not have yet is told that the
// holder is not known, that the same key may be tried again, and nothing of who it may be.
// Once they have it, the holder is named. One send.
func TestA5ClaimThatIsNotReplicated(t *testing.T) {
	c := kurrentnode.Gather(t, 3)
	first, second := &hooked{Log: clustered(t, c.URL()), apart: true}, &hooked{Log: clustered(t, c.URL()), apart: true}
	f := fixtureOn(t, first, nil)
	loser := newLedger(t, second, nil)
	id := f.request(t, "order-1")
	before := c.Leader().Streams.Len(id.Stream())

	first.before = once("KeyClaimed", func() { c.Cut(c.Nodes[1:]...) })
	won := make(chan error, 1)
	second.before = once("KeyClaimed", func() {
		go func() {
			_, err := f.Submit(context.Background(), "req-1", id, f.bank.Send, nil)
			won <- err
		}()
		for c.Leader().Streams.Len(id.Stream()) == before {
			time.Sleep(time.Millisecond)
		}
	})
	_, err := loser.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
	r := refused(t, err, aggregate.CodeUnavailable)
	if !strings.Contains(err.Error(), "holder is not known yet") || !strings.Contains(err.Error(), "the same key is safe to retry") || r.Holder != "" {
		t.Errorf("the loser is told: %v", err)
	}
	if f.bank.sends() != 0 {
		t.Error("it was sent before most nodes had the claim")
	}
	c.Mend(c.Nodes[1:]...)
	if err := <-won; err != nil {
		t.Fatalf("the winner: %v", err)
	}
	_, err = loser.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
	if r := refused(t, err, aggregate.CodeWithdrawalClaimed); r.Holder != "req-1" {
		t.Errorf("the holder is %q", r.Holder)
	}
	if f.bank.sends() != 1 {
		t.Errorf("%d sends", f.bank.sends())
	}
}

// A7, on a cluster: a leader is lost with a claim that no other node has. Its caller still
// waits then, claims on the next leader, and sends once; or finds that another was first
// there, and does not send.
func TestA7ClaimLostWithItsLeader(t *testing.T) {
	for name, overtaken := range map[string]bool{"claims again": false, "is overtaken": true} {
		t.Run(name, func(t *testing.T) {
			c := kurrentnode.Gather(t, 3)
			a := c.Leader()
			log := &hooked{Log: clustered(t, c.URL()), apart: true}
			f := fixtureOn(t, log, nil)
			other := newLedger(t, clustered(t, c.URL()), nil)
			id := f.request(t, "order-1")
			before := a.Streams.Len(id.Stream())
			log.before = once("KeyClaimed", func() { c.Cut(a) })
			claimed := make(chan error, 1)
			go func() {
				_, err := f.Submit(context.Background(), "req-1", id, f.bank.Send, nil)
				claimed <- err
			}()
			for a.Streams.Len(id.Stream()) == before {
				time.Sleep(time.Millisecond)
			}
			a.Stop()
			c.Elect(t)
			if overtaken {
				// It competes with the other's repetition: one of them is first.
				_, err := other.Submit(t.Context(), "req-2", id, f.bank.Send, nil)
				if theirs := <-claimed; (err == nil) == (theirs == nil) {
					t.Errorf("the one is told %v, the other %v", err, theirs)
				}
			} else if err := <-claimed; err != nil {
				t.Errorf("the caller: %v", err)
			}
			a.Listen(t)
			c.Mend(a)
			if n := a.Streams.Len(id.Stream()); f.bank.sends() != 1 || n != before+3 {
				t.Errorf("%d sends, %d events", f.bank.sends(), n-before)
			}
		})
	}
}

// derived returns an id that is made from a withdrawal's, as people do to be idempotent.
func derived(id events.WithdrawalID) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(id)) }

// fooled pays a withdrawal the wrong way: it claims, expecting that nobody has, with an
// event id that is made from the withdrawal's, and sends when the server says that it has.
func fooled(t *testing.T, url string, key events.RequestKey, id events.WithdrawalID, b *bank) {
	t.Helper()
	config, err := esdb.ParseConnectionString(url)
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = esdb.NoopLogging()
	client, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.AppendToStream(t.Context(), "claim-"+string(id), esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}},
		esdb.EventData{EventID: derived(id), EventType: "Claimed", Data: []byte(key)})
	if err == nil {
		_, _ = b.Send(t.Context(), rail.Payment{Withdrawal: id, Attempt: 1}) // it always succeeds
	}
}

// Event ids that are made from the withdrawal's let the server tell every claimant that it
// has won: two sends. The ledger's claims, made with the very same ids, send once: what the
// server compares is also made from what the events hold.
func TestDerivedIDs(t *testing.T) {
	url := kurrentnode.Keep(t).URL()
	wrong := &bank{}
	for _, key := range []events.RequestKey{"req-1", "req-2"} {
		fooled(t, url, key, "w1", wrong)
	}
	if wrong.sends() != 2 {
		t.Errorf("the wrong way sent %d times: this shows nothing", wrong.sends())
	}

	f := fixtureOn(t, clustered(t, url), nil)
	id := f.request(t, "order-1")
	claimant := func(log eventlog.Log) *submissions.Ledger {
		n := byte(0)
		return newLedger(t, log, &submissions.Options{NewID: func() uuid.UUID {
			made := derived(id)
			made[15] += n
			n++
			return made
		}})
	}
	second := &hooked{Log: clustered(t, url), apart: true}
	second.before = once("KeyClaimed", func() { // when it has seen that nobody has claimed
		taken(t)(claimant(clustered(t, url)).Submit(t.Context(), "req-1", id, f.bank.Send, nil))
	})
	_, err := claimant(second).Submit(t.Context(), "req-2", id, f.bank.Send, nil)
	if r := refused(t, err, aggregate.CodeWithdrawalClaimed); r.Holder != "req-1" || f.bank.sends() != 1 {
		t.Errorf("the holder is %q, %d sends", r.Holder, f.bank.sends())
	}
}
