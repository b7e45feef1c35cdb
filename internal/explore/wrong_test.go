package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/internal/explore"
	"holdfast/rail"
)

// The wrong ways: each is a small ledger of its own, on the same log, with the same rail,
// explored in the same way. Each loses money, and the search has to find how.
func TestWrongWaysAreFound(t *testing.T) {
	crash := explore.Budget{Crashes: 1}
	none := explore.Budget{}
	same, two := []string{"K1", "K1"}, []string{"K1", "K2"}
	for _, c := range []struct {
		name   string
		submit subject
		keys   []string
		to     []int // the withdrawal that each submits
		budget explore.Budget
		loses  string
	}{
		{"record after send, two clients", recordAfterSend, two, []int{0, 0}, none, "double payment"},
		{"record after send, a crash and a retry", recordAfterSend, same, []int{0, 0}, crash, "double payment"},
		{"record before send", recordBeforeSend, two[:1], []int{0}, crash, "lost payment"},
		{"check, then insert", checkThenInsert, two, []int{0, 0}, none, "double payment"},
		{"a lock in each process", lockedByProcess(), two, []int{0, 0}, none, "double payment"},
		{"an idempotency key alone", byKeyAlone, two, []int{0, 0}, none, "double payment"},
		{"event ids derived from the withdrawal", derivedIDs, two, []int{0, 0}, none, "double payment"},
		{"a pending reservation taken for void", protocol(pendingAsVoid), same, []int{0, 1}, none, "live on two"},
		{"no look at the other withdrawal", protocol(noLookAtTheOther), same, []int{0, 1}, none, "live on two"},
		{"the revision bumped after a conflict", protocol(bumped), two, []int{0, 0}, none, "double payment"},
		{"the withdrawal read after the reservation", protocol(readLate), two, []int{0, 0}, none, "double payment"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := explore.Scenario{Name: c.name, Withdrawals: 2, Budget: c.budget}
			for i, key := range c.keys {
				s.Actors = append(s.Actors, explore.Actor{Name: fmt.Sprintf("%s for W%d", key, c.to[i]), Do: func(ctx context.Context, p *explore.Process) {
					c.submit(ctx, p, key, p.Withdrawals[c.to[i]])
				}})
			}
			r := explore.Search(t, s, explore.Options{Check: keepsMoney})
			if r.Violation == nil {
				t.Fatalf("survived %d schedules", r.Runs)
			}
			if !strings.Contains(r.Violation.Err.Error(), c.loses) {
				t.Errorf("found another fault than %q", c.loses)
			}
			t.Logf("found after %d schedules: %s", r.Runs, r.Violation)
		})
	}
}

// The protocol as it should be survives the same search, so it is the bugs that are found.
func TestRightWaySurvives(t *testing.T) {
	for _, to := range [][]int{{0, 0}, {0, 1}} {
		for _, keys := range [][]string{{"K1", "K1"}, {"K1", "K2"}} {
			s := explore.Scenario{Name: "right", Withdrawals: 2, Budget: explore.Budget{Crashes: 1}}
			for i, key := range keys {
				s.Actors = append(s.Actors, explore.Actor{Name: key, Do: func(ctx context.Context, p *explore.Process) {
					protocol("")(ctx, p, key, p.Withdrawals[to[i]])
				}})
			}
			if r := explore.Search(t, s, explore.Options{Check: keepsMoney}); r.Violation != nil {
				t.Errorf("keys %v, withdrawals %v: %s", keys, to, r.Violation)
			}
		}
	}
}

// subject is one way to pay a withdrawal under a key.
type subject func(ctx context.Context, p *explore.Process, key string, id events.WithdrawalID)

// keepsMoney checks what every ledger has to keep.
func keepsMoney(e *explore.Ending) error {
	live := map[string]events.WithdrawalID{}
	for i, id := range e.Withdrawals {
		left := len(e.Left[id])
		if left > 1 {
			return fmt.Errorf("double payment: W%d left %d times", i, left)
		}
		for r, err := range e.Log.ReadStream(context.Background(), record(id), 0) {
			if err != nil {
				return err
			}
			if r.Type == "Sent" && left == 0 {
				return fmt.Errorf("lost payment: W%d is recorded as sent, and nothing left", i)
			}
			if other, ok := live[string(r.Data)]; r.Type == "Claimed" && ok && other != id {
				return fmt.Errorf("key %s is live on two withdrawals", r.Data)
			}
			if r.Type == "Claimed" {
				live[string(r.Data)] = id
			}
		}
	}
	return nil
}

func record(id events.WithdrawalID) string { return "record-" + string(id) }

func read(ctx context.Context, log eventlog.Log, stream string) (all []eventlog.Recorded) {
	for r, err := range log.ReadStream(ctx, stream, 0) {
		if err != nil {
			return nil
		}
		all = append(all, r)
	}
	return all
}

func put(ctx context.Context, log eventlog.Log, stream string, at int, eventType, data string, id uuid.UUID) error {
	_, err := log.Append(ctx, eventlog.StreamAppend{
		Stream: stream, At: uint64(at), Events: []eventlog.Event{{ID: id, Type: eventType, Data: []byte(data)}},
	})
	return err
}

func pay(ctx context.Context, p *explore.Process, id events.WithdrawalID) error {
	_, err := p.Send(ctx, rail.Payment{Withdrawal: id, Attempt: 1})
	return err
}

func recordAfterSend(ctx context.Context, p *explore.Process, key string, id events.WithdrawalID) {
	if len(read(ctx, p.Log, record(id))) > 0 || pay(ctx, p, id) != nil {
		return
	}
	_ = put(ctx, p.Log, record(id), 0, "Sent", key, uuid.New())
}

func recordBeforeSend(ctx context.Context, p *explore.Process, key string, id events.WithdrawalID) {
	if put(ctx, p.Log, record(id), 0, "Sent", key, uuid.New()) == nil {
		_ = pay(ctx, p, id)
	}
}

func checkThenInsert(ctx context.Context, p *explore.Process, key string, id events.WithdrawalID) {
	if len(read(ctx, p.Log, record(id))) > 0 {
		return
	}
	for { // an insert that does not care what is there: "any"
		at := len(read(ctx, p.Log, record(id)))
		if err := put(ctx, p.Log, record(id), at, "Claimed", key, uuid.New()); err == nil {
			break
		} else if conflict := (*eventlog.Conflict)(nil); !errors.As(err, &conflict) {
			return
		}
	}
	_ = pay(ctx, p, id)
}

// lockedByProcess has a lock for each process, which is a key here.
func lockedByProcess() subject {
	locks := map[string]*sync.Mutex{"K1": {}, "K2": {}}
	return func(ctx context.Context, p *explore.Process, key string, id events.WithdrawalID) {
		locks[key].Lock()
		defer locks[key].Unlock()
		recordAfterSend(ctx, p, key, id)
	}
}

// byKeyAlone claims the key, and nothing claims the withdrawal.
func byKeyAlone(ctx context.Context, p *explore.Process, key string, id events.WithdrawalID) {
	if put(ctx, p.Log, "key-"+key, 0, "Claimed", key, uuid.New()) == nil {
		_ = pay(ctx, p, id)
	}
}

func derived(id events.WithdrawalID) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(id)) }

// derivedIDs claims with an event id that is made from the withdrawal's, on a log that
// takes equal ids for a retry without looking at the bytes.
func derivedIDs(ctx context.Context, p *explore.Process, key string, id events.WithdrawalID) {
	err := put(ctx, p.Log, record(id), 0, "Claimed", key, derived(id))
	if conflict := (*eventlog.Conflict)(nil); errors.As(err, &conflict) {
		if there := read(ctx, p.Log, record(id)); len(there) > 0 && there[0].ID == derived(id) {
			err = nil
		}
	}
	if err == nil {
		_ = pay(ctx, p, id)
	}
}

// bug is a mistake in the claim protocol; "" is the protocol as it should be.
type bug string

const (
	pendingAsVoid    bug = "a pending reservation is superseded"
	noLookAtTheOther bug = "the other withdrawal is not looked at"
	bumped           bug = "after a conflict the same events are appended further on"
	readLate         bug = "the withdrawal is read again after the reservation"
)

// protocol is the claim protocol in a few lines, without outcomes, with one bug.
func protocol(b bug) subject {
	return func(ctx context.Context, p *explore.Process, key string, id events.WithdrawalID) {
		for range 5 {
			reservations := read(ctx, p.Log, "key-"+key)
			w := read(ctx, p.Log, record(id))
			if slices.ContainsFunc(w, func(r eventlog.Recorded) bool { return r.Type == "Claimed" }) {
				return
			}
			reserve := true
			if n := len(reservations); n > 0 {
				var other string
				var at int
				if _, err := fmt.Sscan(string(reservations[n-1].Data), &other, &at); err != nil {
					panic(err)
				}
				if other == string(id) && at == len(w) {
					reserve = false
				} else if b != noLookAtTheOther {
					there := read(ctx, p.Log, record(events.WithdrawalID(other)))
					pending := len(there) <= at
					bound := len(there) > at && there[at].Type == "Claimed" && string(there[at].Data) == key
					if bound || pending && b != pendingAsVoid {
						return
					}
				}
			}
			if reserve {
				data := fmt.Sprint(string(id), " ", len(w))
				if put(ctx, p.Log, "key-"+key, len(reservations), "Reserved", data, uuid.New()) != nil {
					continue
				}
			}
			at := len(w)
			if b == readLate {
				at = len(read(ctx, p.Log, record(id)))
			}
			err := put(ctx, p.Log, record(id), at, "Claimed", key, uuid.New())
			if err != nil && b == bumped {
				err = put(ctx, p.Log, record(id), at+1, "Claimed", key, uuid.New())
			}
			if err == nil {
				_ = pay(ctx, p, id)
				return
			}
		}
	}
}
