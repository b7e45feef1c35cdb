package explore_test

import (
	"flag"
	"fmt"
	"testing"

	"holdfast/internal/explore"
)

var far = flag.String("explore", "short", "how far to explore: short, or full (takes half an hour)")

// scenario is a scenario before it is said on which kind of engine it runs, with how much
// may go wrong in the short exploration and in the full one.
type scenario struct {
	name        string
	withdrawals int
	actors      []explore.Actor
	short, full explore.Budget
}

func scenarios() []scenario {
	submit, release, resolve := explore.Submit, explore.Release, explore.Resolve
	one := explore.Budget{Crashes: 1, Lost: 1, Rail: 1}
	two := explore.Budget{Crashes: 2, Lost: 2, Rail: 2}
	return []scenario{
		{"two submitters with two keys", 1, []explore.Actor{submit("K1", 0, 1), submit("K2", 0, 1)}, one, two},
		{"one key on two withdrawals", 2, []explore.Actor{submit("K1", 0, 1), submit("K1", 1, 1)}, one, two},
		{"one key twice and another key", 1,
			[]explore.Actor{submit("K1", 0, 1), submit("K1", 0, 1), submit("K2", 0, 1)}, explore.Budget{}, one},
		{"a client that retries, and another", 1, []explore.Actor{submit("K1", 0, 2), submit("K2", 0, 1)}, explore.Budget{Rail: 1}, one},
		{"two submitters and a releaser", 1,
			[]explore.Actor{submit("K1", 0, 1), submit("K2", 0, 1), release("K1", 0)}, explore.Budget{}, one},
		{"a late answer after a release", 1, []explore.Actor{submit("K1", 0, 1), release("K1", 0)}, one, two},
		{"a release and the same key again", 1, []explore.Actor{submit("K1", 0, 2), release("K1", 0)}, one, two},
		{"a resolver and a sender", 1, []explore.Actor{submit("K1", 0, 1), resolve("K1", 0)}, one, two},
		{"a callback under a fresh key and a sender", 1, []explore.Actor{submit("K1", 0, 1), resolve("K2", 0)}, one, two},
		{"a resolver and a releaser", 1,
			[]explore.Actor{submit("K1", 0, 1), resolve("K1", 0), release("K1", 0)}, explore.Budget{}, one},
		{"six processes mixed", 2, []explore.Actor{
			submit("K1", 0, 1), submit("K2", 0, 1), submit("K1", 1, 1), release("K1", 0), resolve("K2", 1), submit("K3", 1, 1),
		}, explore.Budget{}, explore.Budget{}},
	}
}

// shortRuns is how many schedules of a scenario the short exploration runs at most, and
// fullRuns the full one: only that of six processes has more than that.
const (
	shortRuns = 400
	fullRuns  = 300_000
)

// TestExplore walks every interleaving of every scenario, on both kinds of engine, with
// processes that remember the withdrawals and processes that do not.
func TestExplore(t *testing.T) {
	runs, states, schedules := 0, 0, 0.0
	for _, s := range scenarios() {
		for _, apart := range []bool{false, true} {
			for _, remembered := range []bool{false, true} {
				name := fmt.Sprintf("%s, apart %v, remembered %v", s.name, apart, remembered)
				t.Run(name, func(t *testing.T) {
					budget, options := s.short, explore.Options{MostRuns: shortRuns}
					if *far == "full" {
						budget, options = s.full, explore.Options{MostRuns: fullRuns}
					}
					r := explore.Search(t, explore.Scenario{
						Name: name, Withdrawals: s.withdrawals, Remembered: remembered, Apart: apart, Actors: s.actors, Budget: budget,
					}, options)
					t.Logf("%d schedules run, %d states, standing for %.3g schedules, complete: %v", r.Runs, r.States, r.Schedules, r.Complete)
					if r.Violation != nil {
						t.Error(r.Violation)
					}
					runs, states, schedules = runs+r.Runs, states+r.States, schedules+r.Schedules
				})
			}
		}
	}
	t.Logf("in all: %d schedules run, %d states, standing for %.3g schedules", runs, states, schedules)
}
