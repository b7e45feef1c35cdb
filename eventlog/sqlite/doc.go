// Package sqlite is the event log's engine of record: one SQLite file, which any
// number of processes on one machine may share. It needs no server, and the file can be
// looked into with any SQLite tool (the view "log" shows the events in order).
//
//	log, err := sqlite.Open(ctx, "holdfast.db", nil)
//	if err != nil {
//		var refused *eventlog.OpenError
//		if errors.As(err, &refused) {
//			fmt.Fprintln(os.Stderr, "Error:", refused.Reason, "\nTry:", refused.Try)
//		}
//		return err
//	}
//	defer log.Close()
//
// How it works. One goroutine writes. It takes every call that is waiting, checks each
// against the heads of its streams, and writes all that passed in one transaction, so
// that many callers share the cost of one durable commit (group commit). The heads are
// read inside that write transaction, or remembered from an earlier one for as long as
// SQLite says, inside it, that no other connection has committed since; so the check
// holds against every other process too. An append is acknowledged after SQLite has
// synced its write-ahead log (synchronous=FULL). Several connections read at the same time and never wait for the
// writer; none is held while a consumer looks at an event.
//
// The tables are append-only: triggers refuse updates and deletions by any program, for as
// long as nobody takes them out. Positions are dense, so a missing event shows. Readers of its stream, and appends to it, get an
// [*eventlog.Damaged]; readers of the whole log get all the others.
//
// Caveats. The file must be on a local disk: SQLite's locks and its shared memory do
// not work over network file systems. The files beside it that end in "-wal" and "-shm"
// belong to it and must not be removed; to copy a log that is in use, use SQLite's
// backup or VACUUM INTO. A process must not open the log file by other means than
// SQLite while it has the log open, because closing any descriptor of a file drops all
// of a process's POSIX locks on it. An append checks that the last 16 revisions of its
// stream are there; the whole of a longer stream is checked when it is read.
package sqlite
