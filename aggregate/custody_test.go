package aggregate_test

import (
	"errors"
	"testing"

	"holdfast/aggregate"
	"holdfast/events"
)

// A log is a ledger, or is copied into, or was left; and it goes from one to the next in
// one order only.
func TestCustody(t *testing.T) {
	begun := func(id string) events.Event { return events.CopyBegun{Copy: id, From: "old", First: "e-1"} }
	advanced := func(id string, n uint64) events.Event { return events.CopyAdvanced{Copy: id, Position: n, Events: n} }
	completed := func(id string) events.Event { return events.CopyCompleted{Copy: id, Events: 9} }
	moved := func(id string) events.Event { return events.LedgerMoved{Copy: id, To: "new"} }
	kept := func(id string) events.Event { return events.LedgerKept{Copy: id} }
	tests := []struct {
		name    string
		history []events.Event
		keeper  aggregate.Keeper
		damaged bool // by the last event
	}{
		{"never copied", nil, aggregate.Here, false},
		{"begun", []events.Event{begun("1")}, aggregate.Coming, false},
		{"advanced", []events.Event{begun("1"), advanced("1", 5), advanced("1", 5)}, aggregate.Coming, false},
		{"completed", []events.Event{begun("1"), advanced("1", 5), completed("1")}, aggregate.Here, false},
		{"left", []events.Event{moved("1")}, aggregate.Gone, false},
		{"completed and left", []events.Event{begun("1"), completed("1"), moved("2")}, aggregate.Gone, false},
		{"coming back", []events.Event{moved("1"), begun("2")}, aggregate.Coming, false},
		{"back", []events.Event{moved("1"), begun("2"), completed("2")}, aggregate.Here, false},
		{"begun twice", []events.Event{begun("1"), begun("2")}, aggregate.Coming, true},
		{"begun in a ledger", []events.Event{begun("1"), completed("1"), begun("2")}, aggregate.Here, true},
		{"advanced without a copy", []events.Event{advanced("1", 5)}, aggregate.Here, true},
		{"advanced by another", []events.Event{begun("1"), advanced("2", 5)}, aggregate.Coming, true},
		{"gone back", []events.Event{begun("1"), advanced("1", 5), advanced("1", 4)}, aggregate.Coming, true},
		{"completed without a copy", []events.Event{completed("1")}, aggregate.Here, true},
		{"another completed", []events.Event{begun("1"), completed("2")}, aggregate.Coming, true},
		{"left twice", []events.Event{moved("1"), moved("2")}, aggregate.Gone, true},
		{"left while coming", []events.Event{begun("1"), moved("2")}, aggregate.Coming, true},
		{"given up", []events.Event{begun("1"), moved("1")}, aggregate.Gone, false},
		{"given up and begun again", []events.Event{begun("1"), moved("1"), begun("2"), completed("2")}, aggregate.Here, false},
		{"kept", []events.Event{moved("1"), kept("1")}, aggregate.Here, false},
		{"kept and left", []events.Event{moved("1"), kept("1"), moved("2")}, aggregate.Gone, false},
		{"kept though not left", []events.Event{kept("1")}, aggregate.Here, true},
		{"kept for another copy", []events.Event{moved("1"), kept("2")}, aggregate.Gone, true},
		{"kept where the copy was given up", []events.Event{begun("1"), moved("1"), kept("1")}, aggregate.Gone, true},
		{"another's event", []events.Event{events.Released{}}, aggregate.Here, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c aggregate.Custody
			for i, e := range tt.history {
				next, err := c.Apply(events.Recorded{Revision: uint64(i), Event: e})
				if damaged := i == len(tt.history)-1 && tt.damaged; (err != nil) != damaged {
					t.Fatalf("%s: %v", e.Type(), err)
				}
				if c = next; err == nil && c.Next() != uint64(i)+1 {
					t.Errorf("after %s the next revision is %d", e.Type(), c.Next())
				}
			}
			if got, _ := c.Keeper(); got != tt.keeper {
				t.Errorf("the keeper is %d, want %d", got, tt.keeper)
			}
			var no *aggregate.NoLedger
			if err := c.Act(); errors.As(err, &no) != (tt.keeper != aggregate.Here) || no != nil && no.Keeper != tt.keeper {
				t.Errorf("commands may act: %v", err)
			}
		})
	}
}
