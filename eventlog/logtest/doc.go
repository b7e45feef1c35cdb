// Package logtest is the conformance suite of the event log: one set of tests that
// every engine runs, so that the code that stands on the port can be moved from one
// engine to another. It also has decorators that show a log's callers the worst that
// the port allows.
//
//	func TestConformance(t *testing.T) {
//		logtest.Run(t, logtest.Harness{
//			Open:            func(t *testing.T) eventlog.Log { return memory.New() },
//			CommitsTogether: true,
//		})
//	}
//
// OneByOne makes of any log one that gives only the weaker promise for several stream
// appends in one call. Faulty makes of any log one whose next appends fail in a chosen
// way, as on a network that loses answers.
//
// Caveats. The suite needs an engine that shows an append to readers once it has been
// acknowledged. A case that an engine has no hook for is skipped, and says so.
package logtest
