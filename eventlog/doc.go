// Package eventlog is the append-only log that everything else is decided
// from: a small port, implemented by an embedded engine (package sqlite), by an
// engine for tests and exploration (package memory), and held to one conformance
// suite (package logtest).
//
// The port promises one thing that the claim protocol stands on: an append to a
// stream happens at a stated revision, all of its events or none, and of two
// appends at the same revision exactly one succeeds. There is no way to append
// without stating the revision.
//
//	_, err := log.Append(ctx, eventlog.StreamAppend{
//		Stream: "withdrawal-w123",
//		At:     1, // the stream holds exactly one event
//		Events: []eventlog.Event{{ID: uuid.New(), Type: "KeyClaimed", Data: data, Metadata: meta}},
//	})
//	var conflict *eventlog.Conflict
//	if errors.As(err, &conflict) {
//		// Somebody else appended first: read the stream and decide again.
//	}
//
// Caveats. Event ids must be fresh for each append decision: an append whose
// events are already in the log at those revisions, with the same ids and the same
// bytes, is a retry and succeeds again, which is what makes an append whose result
// is not known safe to repeat byte for byte. Several stream appends in one call
// travel in one commit only where the engine can do that; elsewhere they are
// applied in order and stop at the first that fails.
package eventlog
