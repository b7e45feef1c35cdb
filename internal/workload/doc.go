// Package workload fills a log with withdrawals that have lived through everything that
// withdrawals live through, in a realistic mix: most are sent at once; some are refused,
// released, resolved by a person, or disputed; some still wait for somebody. Tests of what
// reads whole logs use it.
//
//	w := workload.New(1)
//	for w.Events() < 100_000 {
//		if _, err := log.Append(ctx, w.Next()...); err != nil {
//			return err
//		}
//	}
//
// The same seed gives the same events, ids and times included. What it writes is a sound
// log: it does not go through package submissions only because that would take a commit
// for every step.
package workload
