package kurrentnode

import (
	"context"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// commitTimeout is how long the leader waits for the other nodes, before it says that it
// does not know; two seconds on a server.
const commitTimeout = 100 * time.Millisecond

// Cluster is nodes that keep the same streams, of which one leads. What it takes is on the
// other nodes at once, but while Hold holds it back.
type Cluster struct {
	Nodes []*Node

	streams *Streams
	mu      sync.Mutex
	leader  *Node // nil during an election
	lag     map[*Node]uint64
}

// StartCluster starts three nodes, of which the first leads.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{streams: newStreams(), lag: map[*Node]uint64{}}
	for range 3 {
		n := Start(t)
		n.Streams, n.cluster = c.streams, c
		c.Nodes = append(c.Nodes, n)
	}
	c.leader = c.Nodes[0]
	return c
}

// URL names all nodes.
func (c *Cluster) URL() string {
	var hosts []string
	for _, n := range c.Nodes {
		hosts = append(hosts, n.address)
	}
	return "esdb://" + strings.Join(hosts, ",") + "?tls=false&maxDiscoverAttempts=5&discoveryInterval=10&gossipTimeout=1"
}

// Leader returns the node that leads, or nil.
func (c *Cluster) Leader() *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// Hold keeps what is appended from now on with the leader alone: it decides conflicts, it
// cannot be read, and who appended it is told after a while that nobody knows. Replicate
// ends that.
func (c *Cluster) Hold() {
	c.streams.mu.Lock()
	defer c.streams.mu.Unlock()
	c.streams.replicated = c.streams.next - 1
}

// Replicate lets the other nodes have what was held back.
func (c *Cluster) Replicate() {
	c.streams.mu.Lock()
	defer c.streams.mu.Unlock()
	c.streams.replicated = math.MaxUint64
	c.streams.tell()
}

// Elect ends the leader's time, and what only it had is lost. The given node leads then;
// none does where it is nil, until somebody is elected.
func (c *Cluster) Elect(leader *Node) {
	c.mu.Lock()
	c.leader = leader
	c.mu.Unlock()
	k := c.streams
	k.mu.Lock()
	defer k.mu.Unlock()
	lost := func(e *event) bool { return e.position > k.replicated }
	for _, e := range slices.Backward(k.all) {
		if lost(e) {
			s := k.streams[e.stream]
			delete(s.events, e.revision)
			if s.length = e.revision; s.length == 0 {
				delete(k.streams, e.stream)
			}
		}
	}
	k.all = slices.DeleteFunc(slices.Clone(k.all), lost)
	k.replicated = math.MaxUint64
	k.losses++
	k.tell()
}

// Lag lets a follower show nothing newer than there is now, until it leads.
func (c *Cluster) Lag(n *Node) {
	c.streams.mu.Lock()
	position := c.streams.next - 1
	c.streams.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lag[n] = position
}

// Streams returns what the nodes keep.
func (c *Cluster) Streams() *Streams { return c.streams }

// admit decides whether a node answers a request: those that only the leader may answer
// are sent there. A nil cluster admits everything.
func (c *Cluster) admit(n *Node, ctx context.Context, trailer func(metadata.MD)) error {
	if c == nil {
		return nil
	}
	leader := c.Leader()
	md, _ := metadata.FromIncomingContext(ctx)
	switch {
	case leader == nil:
		return status.Error(codes.Unavailable, "Server Is Not Ready")
	case n == leader || !slices.Contains(md.Get("requires-leader"), "true"):
		return nil
	}
	host, port, err := net.SplitHostPort(leader.address)
	if err != nil {
		return err
	}
	trailer(metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port))
	return status.Error(codes.NotFound, "Leader info available")
}

// seenBy is the position up to which a node shows what there is.
func (c *Cluster) seenBy(n *Node) uint64 {
	if c == nil {
		return math.MaxUint64
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if position, lags := c.lag[n]; lags && n != c.leader {
		return position
	}
	return math.MaxUint64
}

// losses counts the elections so far.
func (c *Cluster) losses() int {
	if c == nil {
		return 0
	}
	c.streams.mu.Lock()
	defer c.streams.mu.Unlock()
	return c.streams.losses
}

// replicated waits until the other nodes have what an append wrote, or found written. The
// error is what its caller is told when that takes too long, or when the leader that
// decided, after so many losses, leads no more.
func (c *Cluster) replicated(ctx context.Context, decided *streams.AppendResp, losses int) error {
	position := decided.GetSuccess().GetPosition().GetCommitPosition()
	if c == nil || position == 0 {
		return nil
	}
	timeout := time.NewTimer(commitTimeout)
	defer timeout.Stop()
	for {
		c.streams.mu.Lock()
		there, lost, changed := position <= c.streams.replicated, c.streams.losses != losses, c.streams.changed
		c.streams.mu.Unlock()
		switch {
		case lost:
			return status.Error(codes.Aborted, "Request canceled by server")
		case there:
			return nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			return status.Error(codes.Aborted, "Operation timed out: Commit phase timeout.")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// members is what each node says of all.
func (c *Cluster) members() (*gossip.ClusterInfo, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := &gossip.ClusterInfo{}
	for _, n := range c.Nodes {
		host, port, err := net.SplitHostPort(n.address)
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			return nil, err
		}
		state := gossip.MemberInfo_Follower
		if n == c.leader {
			state = gossip.MemberInfo_Leader
		}
		info.Members = append(info.Members, &gossip.MemberInfo{
			State: state, IsAlive: true, HttpEndPoint: &gossip.EndPoint{Address: host, Port: uint32(number)},
		})
	}
	return info, nil
}
