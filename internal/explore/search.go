package explore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Options bound a search. The zero value means no bound.
type Options struct {
	// MostRuns is how many schedules are run at most; the report says when it was
	// reached.
	MostRuns int
	// Check is what is checked at the end of each schedule; Invariants by default.
	Check Check
}

// Report is what a search found.
type Report struct {
	Scenario string
	// Runs is how many schedules were run, each different from all others, and States
	// how many states were found.
	Runs, States int
	// Schedules is how many schedules those stand for: every order of steps and faults
	// from the start to an end. It is a float because it may be very large.
	Schedules float64
	// Complete is false when the search stopped at MostRuns.
	Complete bool
	// Violation is nil when everything held in every schedule.
	Violation *Violation
}

// Violation is a schedule at whose end something does not hold.
type Violation struct {
	Err   error
	Story []Decision
	names []string
}

// String tells the schedule, step by step.
func (v *Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n", v.Err)
	for i, d := range v.Story {
		fmt.Fprintf(&b, "%3d. %-12s %s: %s\n", i+1, v.names[d.Actor], d.What, d.Choice)
	}
	return b.String()
}

// frame is one state on the way from the start to where the search is.
type frame struct {
	state     state
	decisions []Decision
	next      int
	schedules float64
}

// Search walks every schedule of the scenario, depth first. It stops at the first
// violation, and shrinks it.
func Search(t *testing.T, s Scenario, o Options) Report {
	t.Helper()
	if o.Check == nil {
		o.Check = Invariants
	}
	report := Report{Scenario: s.Name, Complete: true}
	known := map[state]float64{} // how many schedules go on from each state
	var path []frame
	for {
		if o.MostRuns > 0 && report.Runs == o.MostRuns {
			report.Complete = false
			break
		}
		var violation *Violation
		depth := 0
		leaf := 0.0 // schedules from where this run stops
		play(t, s, func(at state, decisions []Decision) *Decision {
			if depth == len(path) { // new ground
				if n, seen := known[at]; seen {
					leaf = n
					return nil
				}
				report.States++
				if len(decisions) == 0 {
					known[at], leaf = 1, 1
					return &Decision{}
				}
				path = append(path, frame{state: at, decisions: decisions})
			}
			f := &path[depth]
			if f.state != at {
				panic(fmt.Sprintf("explore: %s is not the same each time: decision %d", s.Name, depth))
			}
			depth++
			return &f.decisions[f.next]
		}, func(w *world) {
			if err := o.Check(w.ending()); err != nil {
				violation = &Violation{Err: err, Story: slices.Clone(w.story)}
			}
		})
		report.Runs++
		if violation != nil {
			report.Violation = shrink(t, s, o.Check, violation)
			break
		}
		// Back to the last state that has a decision left.
		for len(path) > 0 {
			f := &path[len(path)-1]
			f.schedules += leaf
			if f.next++; f.next < len(f.decisions) {
				break
			}
			known[f.state], leaf = f.schedules, f.schedules
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			report.Schedules = leaf
			break
		}
	}
	return report
}

// replay runs the schedule that takes these decisions in this order, leaving out those
// that cannot be taken, and then lets the processes go on one after another.
func replay(t *testing.T, s Scenario, check Check, wanted []Decision) *Violation {
	var violation *Violation
	play(t, s, func(_ state, decisions []Decision) *Decision {
		if len(decisions) == 0 {
			return &Decision{}
		}
		for len(wanted) > 0 {
			d := wanted[0]
			wanted = wanted[1:]
			for i := range decisions {
				if decisions[i].Actor == d.Actor && decisions[i].Choice == d.Choice {
					return &decisions[i]
				}
			}
		}
		return &decisions[0]
	}, func(w *world) {
		if err := check(w.ending()); err != nil {
			violation = &Violation{Err: err, Story: slices.Clone(w.story)}
		}
	})
	return violation
}

// shrink looks for a simpler schedule that violates too: it takes decisions out, one at a
// time, for as long as that helps.
func shrink(t *testing.T, s Scenario, check Check, v *Violation) *Violation {
	simplest := v
	for again := true; again; {
		again = false
		for i := range simplest.Story {
			fewer := slices.Delete(slices.Clone(simplest.Story), i, i+1)
			if got := replay(t, s, check, fewer); got != nil && weight(got) < weight(simplest) {
				simplest, again = got, true
				break
			}
		}
	}
	for _, a := range s.Actors {
		simplest.names = append(simplest.names, a.Name)
	}
	return simplest
}

// weight is how hard a schedule is to follow: its faults, its changes from one process to
// another, its steps.
func weight(v *Violation) int {
	w := len(v.Story)
	for i, d := range v.Story {
		if d.Choice != Go {
			w += 100
		}
		if i > 0 && v.Story[i-1].Actor != d.Actor {
			w += 10
		}
	}
	return w
}
