// Package memory is an event log in memory, for tests and for exploring every
// interleaving of the code that stands on the log. It keeps the whole promise of the
// port except durability: what it holds is gone with the process.
//
//	log := memory.New()
//	defer log.Close()
//	_, err := log.Append(ctx, eventlog.StreamAppend{Stream: "account-a1", At: 0, Events: events})
//
// It starts no goroutine, never looks at a clock and uses no randomness, so a test
// that calls it in a fixed order sees a fixed log. All stream appends of one call are
// committed together. Positions are dense and start at 1.
//
// Caveats. Nothing is ever freed. An append is decided before Append returns,
// whatever its context: a context that has ended before the call is the only one
// that makes a difference, and then nothing is written.
package memory
