package kurrentnode

import (
	"math"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// Streams is what one node keeps: the events in the order of its log, and what the server's
// rules make of them. Not all of it can be read: the end of a leader's log cannot before
// enough other nodes have it. Appends are decided against all of it.
type Streams struct {
	// CommitTimeout is how long an append waits until it can be read, before its client is
	// told that the operation timed out. The server's default is 2 s.
	CommitTimeout time.Duration
	// MaxEvent and MaxAppend are the most bytes of one event, and of all events of one
	// append: data, metadata, and twice the characters of the type.
	MaxEvent, MaxAppend int

	mu        *sync.Mutex // the nodes of a cluster have one together
	all       []*event
	committed int // how many of all can be read
	streams   map[string]*stream
	recent    map[recentID]*event
	term      int // how often a leader was deposed
	epoch     int // the election of the last leader that this node was, or followed
	changed   chan struct{}
	// replicate brings to the other nodes what was written, under mu; leads reports, under
	// mu, whether the node is the one to write.
	replicate func()
	leads     func() bool
}

// event is an event at a place in a log. It is the same value on all nodes that have it.
type event struct {
	id                   [2]int64
	stream               string
	revision, position   uint64
	index                int // its place in the log
	system               map[string]string
	data, customMetadata []byte
	// begins is where another stream begins from this event of its metadata on.
	begins *uint64
	// entombs says that the event deletes its stream for good.
	entombs bool
	removed bool
}

type stream struct {
	events map[uint64]*event
	first  *event
	length uint64 // one more than the last revision
	begins uint64 // $tb
	gone   bool   // deleted for good
}

type recentID struct {
	stream string
	id     [2]int64
}

func newStreams() *Streams {
	k := &Streams{CommitTimeout: 2 * time.Second, MaxEvent: 16 << 20, MaxAppend: 256 << 20, mu: new(sync.Mutex), changed: make(chan struct{})}
	k.reset()
	k.replicate = func() { k.commit(len(k.all)) }
	k.leads = func() bool { return true }
	return k
}

// reset takes away all events.
func (k *Streams) reset() {
	k.all, k.streams, k.recent = nil, map[string]*stream{}, map[recentID]*event{}
}

// forget takes away what is in a node's memory alone, as a restart does.
func (k *Streams) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recent = map[recentID]*event{}
}

// deleted reports whether the stream was deleted so that it can be written to again.
func (s *stream) deleted() bool { return s.begins == math.MaxInt64 }

// stream returns a stream, and makes room for one that is not there.
func (k *Streams) stream(name string) *stream {
	if k.streams[name] == nil {
		k.streams[name] = &stream{events: map[uint64]*event{}}
	}
	return k.streams[name]
}

// write appends an event, whatever there is.
func (k *Streams) write(e *event) *event {
	e.revision, e.index, e.position = k.stream(e.stream).length, len(k.all), 1000
	if e.entombs {
		e.revision = math.MaxInt64
	}
	if n := len(k.all); n > 0 {
		e.position = k.all[n-1].position + 100 + uint64(len(k.all[n-1].data))
	}
	k.apply(e)
	return e
}

// apply makes an event the next one of the log.
func (k *Streams) apply(e *event) {
	s := k.stream(e.stream)
	k.all = append(k.all, e)
	if e.entombs {
		s.gone = true
		return
	}
	if s.deleted() {
		s.begins = e.revision
	}
	if s.first == nil {
		s.first = e
	}
	s.events[e.revision], s.length = e, e.revision+1
	k.recent[recentID{e.stream, e.id}] = e
	if of, ok := metadataOf(e.stream); ok && e.begins != nil {
		k.stream(of).begins = *e.begins
	}
}

// truncate takes events off the end of the log, none of which can have been read.
func (k *Streams) truncate(length int) {
	kept := k.all[:length]
	k.reset()
	for _, e := range kept {
		k.apply(e)
	}
}

// commit lets all events up to a number of them be read, and wakes who waits for any.
func (k *Streams) commit(n int) {
	k.committed = max(k.committed, n)
	k.wake()
}

func (k *Streams) wake() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// readable reports whether an event can be read on this node.
func (k *Streams) readable(e *event) bool {
	return e != nil && !e.removed && e.index < k.committed
}

// Delete deletes a stream so that it can be written to again, as an operator does.
func (k *Streams) Delete(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	begins := uint64(math.MaxInt64)
	k.write(&event{stream: "$$" + name, data: []byte(`{"$tb":9223372036854775807}`), system: system("$metadata"), begins: &begins})
	k.replicate()
}

// Entomb deletes a stream for good.
func (k *Streams) Entomb(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.write(&event{stream: name, system: system("$streamDeleted"), entombs: true})
	k.replicate()
}

// Truncate lets a stream begin at a revision; beyond its end, it has no events then. It
// leaves nothing in the log, and is for a node that is alone.
func (k *Streams) Truncate(name string, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stream(name).begins = revision
}

// Put appends an event to a stream without any condition, as the server itself does. For
// the stream "$$NAME" it is NAME's metadata; it takes no effect on NAME.
func (k *Streams) Put(name, kind, data string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.write(&event{stream: name, data: []byte(data), system: system(kind)})
	k.replicate()
}

// Remove takes one event out of what can be read, as no server does.
func (k *Streams) Remove(name string, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.streams[name].events[revision].removed = true
}

// Len returns how many events were ever appended to a stream, whether or not they can be
// read.
func (k *Streams) Len(name string) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.streams[name]; s != nil {
		return s.length
	}
	return 0
}

// Size returns how many events there are in all, whether or not they can be read.
func (k *Streams) Size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
}

// system is what the server keeps beside an event.
func system(kind string) map[string]string {
	return map[string]string{"created": created, "type": kind}
}

// eventOf returns a proposed event as it is kept.
func eventOf(stream string, p *streams.AppendReq_ProposedMessage) *event {
	e := &event{id: idOf(p.GetId()), stream: stream, data: p.GetData(), customMetadata: p.GetCustomMetadata(), system: map[string]string{}}
	for key, value := range p.GetMetadata() {
		e.system[key] = value
	}
	e.system["created"] = created
	if _, ok := metadataOf(stream); ok {
		e.begins = beginsOf(e.data)
	}
	return e
}

func idOf(id *shared.UUID) [2]int64 {
	return [2]int64{id.GetStructured().GetMostSignificantBits(), id.GetStructured().GetLeastSignificantBits()}
}
