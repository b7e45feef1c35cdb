package kurrentnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
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

	cluster  *Cluster  // of which it is a member; nil for a node that is alone
	security *security // nil for a node that lets everybody in, without TLS

	mu             sync.Mutex
	append         Append
	read           Read
	lose           func(n int) error
	deaf           <-chan struct{}
	leader         string
	appends, reads int
	headers        []metadata.MD
	address        string
	listener       net.Listener
	server         *grpc.Server
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
	n.address, n.listener = listener.Addr().String(), listener
	// The client pings more often than a server of this library likes, and sends more.
	n.server = grpc.NewServer(append(n.security.options(), grpc.MaxRecvMsgSize(17<<20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))...)
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

// Stop breaks all connections, and takes no more. The address is free then: the server
// alone would give it back later, where it had not begun to serve yet.
func (n *Node) Stop() {
	n.server.Stop()
	_ = n.listener.Close() // which the server may have done
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

// counted counts a listener's connections.
type counted struct {
	net.Listener
	node *Node
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.node.connected(1)
	return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { l.node.connected(-1) })}, nil
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// serving answers for streams.
type serving struct {
	streams.UnimplementedStreamsServer
	*Node
}

func (n *serving) Append(r streams.Streams_AppendServer) error {
	var options *streams.AppendReq_Options
	var proposed []*streams.AppendReq_ProposedMessage
	for {
		req, err := r.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if o := req.GetOptions(); o != nil {
			options = o
		} else {
			proposed = append(proposed, req.GetProposedMessage())
		}
	}
	n.mu.Lock()
	i, answer, lose := n.appends, n.append, n.lose
	n.appends++
	n.note(r.Context())
	n.mu.Unlock()
	switch {
	case answer != nil:
		return answer(i, options, r)
	case n.Streams == nil:
		return r.SendAndClose(Took(0, 100))
	}
	if err := n.cluster.admit(n.Node, r.Context(), r.SetTrailer); err != nil {
		return err
	}
	before := n.cluster.losses()
	decided := n.Streams.append(options, proposed)
	if err := n.cluster.replicated(r.Context(), decided, before); err != nil {
		return err
	}
	if lose != nil {
		if err := lose(i); err != nil {
			return err
		}
	}
	return r.SendAndClose(decided)
}

func (n *serving) Read(req *streams.ReadReq, r streams.Streams_ReadServer) error {
	n.mu.Lock()
	i, answer := n.reads, n.read
	n.reads++
	n.note(r.Context())
	n.mu.Unlock()
	switch {
	case answer != nil:
		return answer(i, req.GetOptions(), r)
	case n.Streams == nil:
		return r.Send(NotFound(req.GetOptions()))
	}
	if err := n.cluster.admit(n.Node, r.Context(), r.SetTrailer); err != nil {
		return err
	}
	return n.Streams.read(req.GetOptions(), r, n.cluster.seenBy(n.Node))
}

func (n *Node) note(ctx context.Context) {
	md, _ := metadata.FromIncomingContext(ctx)
	n.headers = append(n.headers, md)
}

// describing says what the node can do: nothing of use, as old servers do.
type describing struct {
	serverfeatures.UnimplementedServerFeaturesServer
	*Node
}

func (n *describing) GetSupportedMethods(ctx context.Context, _ *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	n.mu.Lock()
	deaf := n.deaf
	n.mu.Unlock()
	if deaf != nil {
		select {
		case <-deaf:
		case <-ctx.Done():
		}
	}
	return nil, status.Error(codes.Unimplemented, "an old server")
}

// gossiping says who leads.
type gossiping struct {
	gossip.UnimplementedGossipServer
	*Node
}

func (n *gossiping) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	if n.cluster != nil {
		return n.cluster.members()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	host, port, err := net.SplitHostPort(n.leader)
	if err != nil {
		return nil, status.Error(codes.Unavailable, "no leader")
	}
	number, err := strconv.Atoi(port)
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{
		State: gossip.MemberInfo_Leader, IsAlive: true, HttpEndPoint: &gossip.EndPoint{Address: host, Port: uint32(number)},
	}}}, err
}
