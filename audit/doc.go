// Package audit checks a log against what it must be, trusting nobody: every stream's
// chain, every event's bytes, every order of events, and that keys and claims agree.
//
//	report, err := audit.Verify(ctx, log, nil)
//	for _, f := range report.Findings {
//		fmt.Println(f.Code, f.Stream, f.Revision, f.Reason)
//	}
//
// Caveats. Verify finds what contradicts itself. Somebody who can rewrite the whole log,
// digests and all, or cut off its newest events, leaves nothing behind that contradicts
// itself; that takes a copy of the log's head kept elsewhere.
package audit
