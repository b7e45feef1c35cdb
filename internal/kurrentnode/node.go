package kurrentnode

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

// Append answers the n-th append, from 0 on, that has been asked for since it was set.
type Append func(n int, o *streams.AppendReq_Options, r streams.Streams_AppendServer) error

// Read answers the n-th reading or subscription, from 0 on, since it was set.
type Read func(n int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error

// Node is one node. Use Start or Keep to make one.
type Node struct {
	// Streams answers what On leaves out. It is nil for a node that keeps nothing: there,
	// appends succeed, and no stream is found.
	Streams *Streams

	mu             sync.Mutex
	append         Append
	read           Read
	before         func(ctx context.Context, n int) error
	lose           func(n int) error
	deaf           <-chan struct{}
	leader         string
	appends, reads int
	headers        []metadata.MD
	address        string
	listener       net.Listener
	server         *grpc.Server
	cluster        *Cluster // nil for a node that is alone
	users          Users    // nil for a node that everybody may use
	security       *tls.Config
	open, accepted int // connections
}

// Start starts a node that keeps nothing, on a loopback address of its own. The test stops
// it.
func Start(t testing.TB) *Node {
	t.Helper()
	n := &Node{}
	n.Listen(t)
	t.Cleanup(n.Stop)
	return n
}

// Keep starts a node that keeps streams.
func Keep(t testing.TB) *Node {
	t.Helper()
	n := Start(t)
	n.Streams = newStreams()
	return n
}

// Listen starts a node that was stopped, on the address that it had before.
func (n *Node) Listen(t testing.TB) {
	t.Helper()
	listener, err := n.listen()
	if err != nil {
		t.Fatal(err)
	}
	n.listener = listener
	if n.server == nil {
		n.address = listener.Addr().String()
	}
	// The client pings more often than a server of this library likes, and sends more.
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(17 << 20), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true})}
	if n.security != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(n.security)))
	}
	n.server = grpc.NewServer(options...)
	streams.RegisterStreamsServer(n.server, &serving{Node: n})
	serverfeatures.RegisterServerFeaturesServer(n.server, &describing{Node: n})
	gossip.RegisterGossipServer(n.server, &gossiping{Node: n})
	server := n.server
	go func() { _ = server.Serve(&counted{listener, n}) }()
}

// listen takes the address that the node had, or a new one. New ones are below those that
// systems give to outgoing connections: while the node is stopped, one of these could
// otherwise take its address.
func (n *Node) listen() (listener net.Listener, err error) {
	if n.address != "" {
		return net.Listen("tcp", n.address)
	}
	for range 100 {
		if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000))); err == nil {
			break
		}
	}
	return listener, err
}

// Stop breaks all connections, and takes no more. What was only in memory is lost. The
// address is free then: the server alone would give it back later, where it had not begun
// to serve yet.
func (n *Node) Stop() {
	n.server.Stop()
	_ = n.listener.Close() // which the server may have done
	if n.Streams != nil {
		n.Streams.forget()
	}
}

// Address is the node's host and port.
func (n *Node) Address() string { return n.address }

// URL names the node, in a way that a search for it does not last long.
func (n *Node) URL() string {
	return "esdb://" + n.address + "?tls=false&maxDiscoverAttempts=2&discoveryInterval=10&gossipTimeout=1"
}

// On says how requests are answered from now on, and begins to count anew. What is nil is
// answered as in the beginning.
func (n *Node) On(append Append, read Read) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.append, n.read, n.appends, n.reads = append, read, 0, 0
}

// Before is called before the i-th append is decided by Streams. An error that it returns
// is the answer, and nothing is written; while it takes its time, so does the append. The
// context is the client's: a server goes on with an append that its client has left.
func (n *Node) Before(before func(ctx context.Context, i int) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.before = before
}

// Lose loses the answers to appends that Streams has decided: for the i-th of them, the
// error that lose returns is answered instead, where it is one.
func (n *Node) Lose(lose func(i int) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose = lose
}

// Deafen lets the node say nothing to clients that connect, until the channel is closed.
func (n *Node) Deafen(until <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deaf = until
}

// Follow lets the node say which node leads.
func (n *Node) Follow(leader *Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leader = leader.address
}

// Counts returns how many appends and how many readings were asked for since On.
func (n *Node) Counts() (appends, reads int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.appends, n.reads
}

// Headers returns the metadata of every request for streams.
func (n *Node) Headers() []metadata.MD {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]metadata.MD(nil), n.headers...)
}

// Connections returns how many connections are open, and how many there were in all.
func (n *Node) Connections() (open, accepted int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open, n.accepted
}

func (n *Node) connected(by int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open += by
	n.accepted += max(by, 0)
}
