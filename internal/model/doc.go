// Package model is what the ledger has to do, in the fewest lines: a sequential
// reference to hold the real one against. It knows the specification (A, B) and nothing
// of the code that keeps it: no streams, no reservations, no folds.
//
//	l := model.New(time.Minute)
//	l.Do(model.Command{Verb: model.Request, Tenant: "default", Withdrawal: "W"})
//	a := l.Do(model.Command{Verb: model.Submit, Tenant: "default", Key: "K", Withdrawal: "W", Deadline: time.Hour})
//	// a.Attempt is 1: the rail is to be called. What it answers is the next command:
//	l.Do(model.Command{Verb: model.Report, Tenant: "default", Key: "K", Withdrawal: "W", Attempt: 1, Result: "sent", Reference: "tx"})
//
// The tests of this package use it twice. Random histories of thousands of commands go
// to the model and to real ledgers on several engines, and every answer is compared.
// Random concurrent histories of several ledgers on one log are checked with porcupine:
// there has to be an order of the calls, each at one moment between its beginning and
// its end, in which the model gives the very answers that were given.
//
//	go test ./internal/model                                         # seconds
//	go test ./internal/model -rapid.checks=20000 -rapid.steps=60     # longer histories
//	go test ./internal/model -histories=2000                         # more concurrency
//	go test ./internal/model -run Linearizable -seed=17              # one seed's calls again
//
// Caveats. A submission that calls a rail is two commands, since that is what others see
// of it: Submit, until the rail is called, and Report, from the rail's answer on. The
// order in which a command is refused for one reason rather than for another is not in
// the specification; the model says it, and so pins it. A concurrent history depends on
// the scheduler as well as on its seed, so a seed repeats the calls and not their order;
// a history that fails is kept, with a picture of it.
package model
