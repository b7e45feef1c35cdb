package projections

import (
	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// Projection makes rows out of what happened to withdrawals.
type Projection struct {
	// Name says what it is about.
	Name string
	// Version counts the changes of its tables and of their meaning. Files of another
	// version are left to the holdfast that knows them.
	Version int
	tables  []*table
	// project says what one step changes. It is pure: it reads nothing but the step.
	project func(s *Step, rows *changes)
}

// Step is one event of a withdrawal's stream, with the withdrawal before and after it.
type Step struct {
	events.Recorded
	Position      eventlog.Position
	Withdrawal    events.WithdrawalID
	Tenant        events.Tenant
	Before, After aggregate.Withdrawal
}

// All returns every projection there is, in the order of their names.
func All() []*Projection {
	return []*Projection{claims(), inFlight(), outcomes(), timeline(), totals(), withdrawals()}
}

// Find returns a projection by name.
func Find(name string) (*Projection, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}
