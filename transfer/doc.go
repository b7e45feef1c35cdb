// Package transfer moves a log from one engine to another: the way out of one machine, and
// back.
//
//	report, err := transfer.Copy(ctx,
//		transfer.Place{Log: from, Name: "sqlite:/var/lib/holdfast/holdfast.db"},
//		transfer.Place{Log: to, Name: "esdb://a:2113,b:2113,c:2113"},
//		&transfer.Options{Actor: "ann", CutOver: true})
//
// What a copy keeps: every stream, with its events in their order, at their revisions, with
// their ids, types and bytes. So every digest and every chain is as it was: they are over
// those, and over nothing that an engine adds. Positions are the engine's own and change;
// no event holds one. The order of the whole log is kept for all streams that point at each
// other (a key's and its withdrawal's), and otherwise to within a window of 4096 events.
//
// The worst that a copy can do is to make two ledgers of one: each would pay what the other
// has paid. So at every moment at most one of the two logs is a ledger. What a log is, its
// custody stream says (package aggregate, Custody), and submissions asks it before every
// command:
//
//	source    ledger ............................... LedgerMoved → no ledger
//	target    CopyBegun → no ledger ........ CopyAdvanced ........ CopyCompleted → ledger
//
// The custody stream belongs to a log itself, and is not copied. A source that was left can
// be copied back to, from the log that took its place; only what came since is written. A
// copy that was not completed can be given up: see TakeBack.
//
// A copy has no state beside the target. Appending what is there already writes nothing, so
// it can be cut off anywhere and run again; CopyAdvanced says from where.
//
// Caveats. Copy reads each log several times: it verifies the source, compares both logs
// event by event, verifies the target, and asks ledgers on both about every key and every
// withdrawal. With a cut-over, all of that is done before the source is sealed. Then, while
// nothing is paid from either log, the logs are compared once more, and what came since is
// verified and asked about. A process of a build that knows nothing of custody streams pays
// from either log; stop those first. A rail's answer to an attempt that ends after the
// cut-over is recorded in the source, where its claim is; Copy refuses to move the ledger
// while an attempt is within its deadline.
package transfer
