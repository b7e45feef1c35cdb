// Package kurrentnode is a KurrentDB node for tests, in this process and behind a real
// socket, that speaks the published protocol. It answers each request as a test says, so
// that what the client makes of it can be seen; or it keeps streams by the server's rules
// for appends: expected revisions, repetitions by ids, deletion, sizes. Several nodes make a
// cluster with one history, and a node can be behind TLS and have users.
//
//	node := kurrentnode.Keep(t)
//	log, err := kurrent.Open(ctx, node.URL(), nil)
//	...
//	node.On(func(n int, o *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
//		return status.Error(codes.Unavailable, "Server Is Too Busy")
//	}, nil)
//
//	cluster := kurrentnode.Gather(t, 3)
//	cluster.Cut(cluster.Leader()) // what it takes now is written there alone
//	...
//	cluster.Elect(t) // and lost now
//
// Faults: an error before an append is decided, or a delay (Before); an answer that is lost
// after it (Lose); connections that break, and a node that comes back (Stop, Listen); a node
// that says nothing (Deafen); nodes that replication does not reach, elections, and leaders
// that nobody else has heard of (Cluster).
//
// The rules are a table that the real client checks, in contract_test.go. With
//
//	HOLDFAST_TEST_ESDB='esdb://admin:PASSWORD@HOST:2113?tlsCAFile=ca.crt' go test ./internal/kurrentnode
//
// it checks a server by the same table: where that fails, the node here has it wrong. It
// leaves streams named contract-… behind.
//
// Caveats. Its rules are a reading of the server's source, and no server; they have not been
// compared with one yet. Deletions expect nothing. Metadata takes effect in its $tb alone:
// nothing expires by age or count, and there are no access control lists, only
// administrators and others. There is no scavenging and there are no persistent
// subscriptions. All nodes of a cluster know at once who leads: none takes itself for the
// leader after another was elected. The revision in the answer to a conflict is made up, as
// nothing may rely on it. A deletion takes effect at once, before most nodes have it.
package kurrentnode
