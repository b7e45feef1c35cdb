// Package kurrent keeps the event log in a KurrentDB or EventStoreDB, a single node or a
// cluster, so that API processes on many machines can share it. It stands on
// EventStore-Client-Go (package esdb), and is the only package that imports it.
//
//	log, err := kurrent.Open(ctx, "esdb://holdfast:PASSWORD@a:2113,b:2113,c:2113?tlsCAFile=ca.crt", nil)
//	if err != nil {
//		var refused *eventlog.OpenError
//		if errors.As(err, &refused) {
//			fmt.Fprintln(os.Stderr, "Error:", refused.Reason, "\nTry:", refused.Try)
//		}
//		return err
//	}
//	defer log.Close()
//
// # URLs
//
// esdb://USER:PASSWORD@HOST:PORT,HOST:PORT?OPTION=VALUE&… names all nodes of a cluster, or
// the one that there is; esdb+discover://NAME stands for all nodes by one name. The user
// and the password are percent-encoded. These are the options; any other is an error, and
// so is a value that is none:
//
//	tls=false            for a server without certificates, which takes no users
//	tlsCAFile=FILE       the authority that signed the nodes' certificates, in PEM
//	tlsVerifyCert=false  for a certificate that nobody vouches for
//	userCertFile, userKeyFile   a user's certificate, in place of a password
//	defaultDeadline=MS   how long the server may take over one request (5000)
//	gossipTimeout=S, discoveryInterval=MS, maxDiscoverAttempts=N
//	                     one search for the leader: N rounds (10), a pause after each (100)
//	keepAliveInterval=MS, keepAliveTimeout=MS
//	nodePreference=leader       the only one there is: commands read from the leader
//	prefix=TEXT          what the names of this log's streams begin with; what does not
//	                     begin with it is somebody else's, and not seen
//
// # How it works
//
// An append is one request with the revision that it states. There is one place that makes
// an expected revision from it, and none that makes "any". The server answers a repetition
// by the events' ids alone, so the id that it is given is the event's own, XORed with a
// digest of what the event holds: the same id with other bytes is another id, and a
// conflict (seal.go). Nothing needs to be read back for that; what it costs is a SHA-256 of
// each event, when it is written and when it is read. Another tool sees those ids.
//
// What is not known to have happened is tried again, with the same ids, order and
// revision, until there is an answer or the time is up; failure.go is the table of what
// each error means. After a conflict the stream is read on the leader, for a short while
// again and again if it looks as if there were no conflict: the server decides against
// writes that the other nodes do not have yet, and that nobody can read. If that does not
// show them, Conflict.Actual is nil. While an earlier try of the same append may still come
// to something, such a conflict settles nothing: what it lost to may be lost with its leader,
// and that try stand. Then the append is tried again until it conflicts with what can be
// read, goes through, or is reported as unknown. Who repeats an append that was reported as
// unknown should take a Conflict without Actual for unknown, too.
//
// A stream that does not begin at revision 0 is damaged, for reading and for appending
// (SPEC D5). The server itself appends to one whose start was deleted, so:
//
//   - an append to a stream that must not exist is accepted only if the server says that it
//     got revision 0. If it got another, the stream was deleted before. What was written
//     stays, the append is reported as Damaged, and everybody who reads the stream sees that
//     it is;
//   - an append at another revision looks at the stream first: one more request, left out
//     where this log has seen it whole within Options.Trust. So a deletion less than that
//     ago may go unnoticed by one append; never by a reading;
//   - reading a short stream reads it from its start. Reading the end of a long one, beyond
//     revision 64, asks for its first event beside it;
//   - a stream that is not found costs a second request, for its metadata, which tells one
//     that was deleted from one that never was.
//
// A position is the server's commit position: where the event begins in the server's log,
// in bytes. Positions grow and are not dense. Each event of an append has its own. The
// server reads from no other number, and says so where one lies between two events; what
// lies behind this log's last event reads as the end.
//
// A supervisor hands out a client that is connected, and replaces it when it has failed, is
// told that its node is unavailable, or does not come back. Calls run apart from their
// callers, whose contexts are heard whatever the client does. A client is closed when the
// last call has left it.
//
// # Caveats
//
// The client forgets a connection each time that a node names a leader that does not answer,
// as may happen a few times during a fail-over: three goroutines each, for as long as the
// process runs. Nothing that it lets its user do prevents that.
// The client ends the process (log.Fatal) if the server sends an event without the time it
// was created; no server does. ReadAll and Follow need the right to read "$all", which by
// default is the administrators'. EventStoreDB up to 25.0 counts the bytes of an append
// otherwise than the port, and refuses one that is within a kilobyte of
// eventlog.MaxAppendBytes (*Refused) unless its MaxAppendSize is raised. A position means
// nothing in another cluster, nor in one that was restored from an older backup. A host that
// is named alone is the only one that is asked who leads: of a cluster, name all nodes.
// Nothing here has met a real server yet; see internal/kurrentnode for what it has met.
// The events of one Append call for several streams are in the log one after another, and
// may be there in part.
package kurrent
