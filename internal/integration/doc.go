// Package integration holds the tests that need a KurrentDB or EventStoreDB server: the
// conformance suite, claimants that race, restarts under load, deletions behind our back,
// and what doctor says of them. It has no code of its own, and relies on nothing but what
// a real server does.
//
// They run three times over, wherever it can be done:
//
//	# on the double of internal/kurrentnode, as a process of its own
//	go test ./internal/integration
//
//	# on any server at hand, single or a cluster, except for its restarts
//	HOLDFAST_TEST_ESDB='esdb://admin:changeit@a:2113,b:2113,c:2113?tlsCAFile=/ca.crt' \
//	    go test -run TestServer -count=1 -timeout 30m ./internal/integration
//
//	# in a container: KurrentDB, or the image that HOLDFAST_TEST_IMAGE names, for which
//	# "eventstoredb" is short for EventStoreDB 24.10
//	go test -tags containers -count=1 -timeout 30m ./internal/integration
//
// Each log has a prefix of its own, which is new each time, so a server may be shared and
// used again. But nothing is cleaned up, and whoever reads a log with a prefix reads past
// everything else on the server: it is faster on an empty one. The user has to be an
// administrator.
package integration
