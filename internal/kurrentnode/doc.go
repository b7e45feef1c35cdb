// Package kurrentnode is a KurrentDB node for tests, in this process and behind a real
// socket, that speaks the published protocol. It answers each request as a test says, so
// that what the client makes of it can be seen; or it keeps streams by the server's rules
// for appends: expected revisions, repetitions by ids, deletion.
//
//	node := kurrentnode.Keep(t)
//	log, err := kurrent.Open(ctx, node.URL(), nil)
//	...
//	node.On(func(n int, o *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
//		return status.Error(codes.Unavailable, "Server Is Too Busy")
//	}, nil)
//
// KeepSecure starts one behind TLS, for users with passwords; StartCluster starts three that
// keep the same streams, of which one leads, and which can lose what only the leader had.
//
// Caveats. Its rules are a reading of the server's source, and no server. It has no
// persistent subscriptions, and of access rights only those of the default users. A node
// that is no member of a Cluster shares its streams with no other.
package kurrentnode
