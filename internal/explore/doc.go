// Package explore runs the real code of submissions through every interleaving that a
// few processes can get into, with crashes, lost answers and failing rails, and checks
// after each what must always hold.
//
// A [Scenario] has actors: each is a process of its own, with its own ledger, that makes
// real calls. Every call of the log and of the rail is a step that the search grants. At
// each step the search may let it happen, kill the process before or after it, lose the
// answer of an append (with the append in the log, or not), or let the rail fail. The
// search walks every order of steps and every such choice, within a budget of faults.
//
//	report := explore.Search(t, scenario, explore.Options{})
//	// report.Violation is nil, or a schedule, shrunk, that a person can read.
//
// Schedules that lead to the same state (log, rail, what each process has seen) go on
// from there in the same way, so each state is gone on from once; the report says how
// many schedules were run, how many states were found, and how many schedules they stand
// for. Time stands still unless every process waits for it.
//
// Caveats. It explores what the scenarios have: few processes and short lives. It takes
// for granted that the engine keeps the promises of the log's port, which package logtest
// holds it to.
package explore
