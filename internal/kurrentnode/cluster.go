package kurrentnode

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
)

// Cluster is several nodes with one history. The one that leads takes the appends; it
// writes them at once, and lets them be read, and answers, once most nodes have them. When
// a test says so, a node is cut off, which replication then does not reach, or the leader
// is deposed and another is elected.
//
// An election follows the server's rule: the nodes that reach each other, if they are most
// of all, let the one lead that has followed the latest leader, and has most of its log. A node that comes back drops
// what the leader's history has not. So what was acknowledged is never lost, and what was
// not may be lost, or not.
type Cluster struct {
	Nodes []*Node

	mu      *sync.Mutex // the one of all nodes' Streams
	leader  *Node
	cut     map[*Node]bool
	term    int
	elected int
}

// Gather starts a cluster of so many nodes. The first leads. An append waits for 100 ms to
// be on most of them.
func Gather(t testing.TB, nodes int) *Cluster {
	t.Helper()
	c := &Cluster{mu: new(sync.Mutex), cut: map[*Node]bool{}}
	for range nodes {
		n := Start(t)
		n.Streams = newStreams()
		n.Streams.mu, n.Streams.replicate, n.Streams.CommitTimeout = c.mu, c.replicate, 100*time.Millisecond
		n.Streams.leads = func() bool { return c.leader == n }
		n.cluster = c
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
	return "esdb://" + strings.Join(hosts, ",") + "?tls=false&maxDiscoverAttempts=2&discoveryInterval=10&gossipTimeout=1"
}

// Leader returns the node that leads; nil between two elections.
func (c *Cluster) Leader() *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// Cut keeps nodes from replicating, with the leader and with each other. Clients still reach
// them.
func (c *Cluster) Cut(nodes ...*Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range nodes {
		c.cut[n] = true
	}
}

// Mend lets nodes replicate again. They get what they have missed, and drop what the leader
// has not.
func (c *Cluster) Mend(nodes ...*Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range nodes {
		delete(c.cut, n)
	}
	c.replicate()
}

// Depose lets no node lead, until there is an election. The appends that wait are cancelled.
func (c *Cluster) Depose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.depose()
}

func (c *Cluster) depose() {
	c.leader = nil
	c.term++
	for _, n := range c.Nodes {
		n.Streams.term = c.term
		n.Streams.wake()
	}
}

// Elect lets the nodes that are not cut off elect a leader, and returns it. It ends the test
// when they are not most of the nodes.
func (c *Cluster) Elect(t testing.TB) *Node {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elect(t)
	c.replicate()
	return c.leader
}

// ElectAlone is Elect, and all nodes but the leader are cut off as soon as they have voted:
// they do not even learn that it leads.
func (c *Cluster) ElectAlone(t testing.TB) *Node {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elect(t)
	for _, n := range c.Nodes {
		if n != c.leader {
			c.cut[n] = true
		}
	}
	return c.leader
}

func (c *Cluster) elect(t testing.TB) {
	t.Helper()
	var voters []*Node
	for _, n := range c.Nodes {
		if !c.cut[n] {
			voters = append(voters, n)
		}
	}
	if 2*len(voters) <= len(c.Nodes) {
		t.Fatalf("%d of %d nodes cannot elect a leader", len(voters), len(c.Nodes))
	}
	c.depose()
	c.elected++
	c.leader = slices.MaxFunc(voters, func(a, b *Node) int { return a.Streams.compare(b.Streams) })
	c.leader.Streams.epoch = c.elected
}

// Elections returns how often a leader was elected.
func (c *Cluster) Elections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elected
}

// compare orders nodes by the ends of their logs: the last election that is in them, and the
// length. A leader writes first of all that it leads, so that a node that has followed it
// comes before all that have only followed, or been, an earlier one. The last event's own
// election would not do: a leader may bring an event to most nodes that it has from earlier.
func (k *Streams) compare(other *Streams) int {
	return cmp.Or(cmp.Compare(k.epoch, other.epoch), cmp.Compare(len(k.all), len(other.all)))
}

// replicate brings the leader's log to the nodes that are not cut off, and lets be read what
// most nodes have.
func (c *Cluster) replicate() {
	if c.leader == nil || c.cut[c.leader] {
		return
	}
	leader := c.leader.Streams
	have := 0
	for _, n := range c.Nodes {
		if !c.cut[n] {
			n.Streams.copy(leader)
			have++
		}
	}
	if 2*have > len(c.Nodes) {
		leader.commit(len(leader.all))
	}
	for _, n := range c.Nodes {
		if !c.cut[n] {
			n.Streams.commit(leader.committed)
		}
	}
}

// copy makes a node's log the leader's.
func (k *Streams) copy(leader *Streams) {
	same := min(len(k.all), len(leader.all))
	for same > 0 && k.all[same-1] != leader.all[same-1] {
		same--
	}
	if same < len(k.all) {
		k.truncate(same)
	}
	for _, e := range leader.all[same:] {
		k.apply(e)
	}
	k.epoch = leader.epoch
}

// info is what the nodes tell each other, and clients, about who leads.
func (c *Cluster) info() (*gossip.ClusterInfo, error) {
	leader := c.Leader()
	info := &gossip.ClusterInfo{}
	for _, n := range c.Nodes {
		state := gossip.MemberInfo_Follower
		if n == leader {
			state = gossip.MemberInfo_Leader
		}
		m, err := member(n.address, state)
		if err != nil {
			return nil, err
		}
		info.Members = append(info.Members, m)
	}
	return info, nil
}
