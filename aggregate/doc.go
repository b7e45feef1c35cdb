// Package aggregate is what is decided, and why: it folds a stream to a state and
// decides a command to events. It is pure: no I/O, no clock, no ids. Everything that
// holdfast promises about money is a line in this package.
//
// There are two aggregates. A [Withdrawal] is the commit record: it says who holds the
// claim and what came of it. A [RequestKey] holds reservations that point at a
// withdrawal's stream; whether one was taken up is read there ([RequestKey.Standing]).
//
//	w, err := w.Apply(recorded)                       // fold
//	plan, err := aggregate.Submit(command, key, w, w) // decide
//	if plan.Empty() {
//		outcome, _ := w.Outcome()                 // nothing to write: a replay
//	}
//
// A decision is a [Plan] of events to append at the revisions that were folded, or a
// [*Refusal] with a [Code]; a plan without events means that there is nothing to write.
//
// Caveats. A plan is good for the revisions it was decided at, and for no others: when
// the append conflicts, fold again and decide again.
package aggregate
