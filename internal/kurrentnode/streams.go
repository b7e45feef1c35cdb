package kurrentnode

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// Streams keeps streams as the server does, as far as an event log sees of it.
type Streams struct {
	mu      sync.Mutex
	all     []*event
	streams map[string]*stream
	next    uint64
	changed chan struct{}
	// replicated is the position up to which the other nodes have everything. What is
	// behind it decides conflicts and cannot be read, and is lost with its node; losses
	// counts how often that has happened.
	replicated uint64
	losses     int
}

type event struct {
	id                   [2]int64
	stream               string
	revision, position   uint64
	system               map[string]string
	data, customMetadata []byte
}

type stream struct {
	events map[uint64]*event
	length uint64 // one more than the last revision
	begins uint64 // $tb
}

func newStreams() *Streams {
	return &Streams{streams: map[string]*stream{}, next: 1000, changed: make(chan struct{}), replicated: math.MaxUint64}
}

// deleted reports whether the stream was deleted so that it can be written to again.
func (s *stream) deleted() bool { return s.begins == math.MaxInt64 }

// append decides an append as the server's index writer does.
func (k *Streams) append(o *streams.AppendReq_Options, proposed []*streams.AppendReq_ProposedMessage) *streams.AppendResp {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := string(o.GetStreamIdentifier().GetStreamName())
	s := k.streams[name]
	if s == nil {
		s = &stream{events: map[uint64]*event{}}
	}
	at := uint64(0)
	if o.GetNoStream() == nil {
		at = o.GetRevision() + 1
	}
	if at < s.length {
		same := 0
		for same < len(proposed) && s.holds(at+uint64(same), proposed[same]) {
			same++
		}
		last := at + uint64(len(proposed)) - 1
		switch {
		case same == len(proposed) && last >= s.begins && s.events[last] != nil:
			return Took(last, s.events[last].position)
		case same == len(proposed):
			return Took(last, 0)
		case same > 0 || at > 0 || !s.deleted():
			return Lost()
		}
	} else if at > s.length {
		return Lost()
	}
	if s.deleted() {
		s.begins = s.length
	}
	k.streams[name] = s
	var last *event
	for _, p := range proposed {
		last = k.write(name, s, p)
	}
	return Took(last.revision, last.position)
}

// holds reports whether the event at a revision has the id of a proposed one.
func (s *stream) holds(revision uint64, p *streams.AppendReq_ProposedMessage) bool {
	e, id := s.events[revision], p.GetId().GetStructured()
	return e != nil && e.id == [2]int64{id.GetMostSignificantBits(), id.GetLeastSignificantBits()}
}

// write appends, whatever there is.
func (k *Streams) write(name string, s *stream, p *streams.AppendReq_ProposedMessage) *event {
	id := p.GetId().GetStructured()
	e := &event{
		id: [2]int64{id.GetMostSignificantBits(), id.GetLeastSignificantBits()}, stream: name, revision: s.length, position: k.next,
		system: map[string]string{"created": created}, data: p.GetData(), customMetadata: p.GetCustomMetadata(),
	}
	for key, value := range p.GetMetadata() {
		e.system[key] = value
	}
	k.next += 100 + uint64(len(e.data))
	s.events[s.length] = e
	s.length++
	k.all = append(k.all, e)
	k.tell()
	return e
}

// tell wakes who waits for a change.
func (k *Streams) tell() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// Delete deletes a stream so that it can be written to again, as an operator does.
func (k *Streams) Delete(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.streams[name].begins = math.MaxInt64
	k.put("$$"+name, "$metadata", `{"$tb":9223372036854775807}`)
}

// Truncate lets a stream begin at a revision; beyond its end, it has no events then.
func (k *Streams) Truncate(name string, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.streams[name].begins = revision
}

// Put appends an event to a stream without any condition, as the server itself does. For
// the stream "$$NAME" it is NAME's metadata; it takes no effect on NAME.
func (k *Streams) Put(name, kind, data string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(name, kind, data)
}

func (k *Streams) put(name, kind, data string) {
	if k.streams[name] == nil {
		k.streams[name] = &stream{events: map[uint64]*event{}}
	}
	k.write(name, k.streams[name], &streams.AppendReq_ProposedMessage{Data: []byte(data), Metadata: map[string]string{"type": kind}})
}

// Remove takes one event out of the log, as no server does.
func (k *Streams) Remove(name string, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.streams[name].events[revision]
	delete(k.streams[name].events, revision)
	k.all = slices.DeleteFunc(slices.Clone(k.all), func(x *event) bool { return x == e })
}

// Len returns how many events were ever appended to a stream.
func (k *Streams) Len(name string) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.streams[name].length
}

// Size returns how many events there are in all.
func (k *Streams) Size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
}

// find returns what a reading is answered with: events up to a position, or that there is
// no such stream.
func (k *Streams) find(o *streams.ReadReq_Options, upTo uint64) (events []*event, absent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	upTo = min(upTo, k.replicated)
	backwards := o.GetReadDirection() == streams.ReadReq_Options_Backwards
	if from := o.GetStream(); from != nil {
		s := k.streams[string(from.GetStreamIdentifier().GetStreamName())]
		if s == nil || s.deleted() || s.events[0] != nil && s.events[0].position > upTo {
			return nil, true
		}
		for r := max(from.GetRevision(), s.begins); r < s.length; r++ {
			if e := s.events[r]; e != nil && e.position <= upTo {
				events = append(events, e)
			}
		}
	} else {
		for _, e := range k.all {
			if e.position > upTo {
				continue
			}
			if p := o.GetAll().GetPosition(); p == nil || backwards && e.position < p.CommitPosition || !backwards && e.position >= p.CommitPosition {
				events = append(events, e)
			}
		}
	}
	if backwards {
		slices.Reverse(events)
	}
	return events[:min(uint64(len(events)), o.GetCount())], false
}

func (e *event) response() *streams.ReadResp {
	return found(&streams.ReadResp_ReadEvent_RecordedEvent{
		Id:               &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{MostSignificantBits: e.id[0], LeastSignificantBits: e.id[1]}}},
		StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(e.stream)}, StreamRevision: e.revision,
		CommitPosition: e.position, PreparePosition: e.position, Metadata: e.system, CustomMetadata: e.customMetadata, Data: e.data,
	})
}

// Read answers a reading or a subscription.
func (k *Streams) Read(o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
	return k.read(o, r, math.MaxUint64)
}

// read answers a reading or a subscription with what there is up to a position.
func (k *Streams) read(o *streams.ReadReq_Options, r streams.Streams_ReadServer, upTo uint64) error {
	if o.GetSubscription() != nil {
		return k.follow(o, r)
	}
	events, absent := k.find(o, upTo)
	if absent {
		return r.Send(NotFound(o))
	}
	for _, e := range events {
		if err := r.Send(e.response()); err != nil {
			return err
		}
	}
	return nil
}

// follow sends what is wanted of all streams, and goes on until the client leaves.
func (k *Streams) follow(o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
	if err := r.Send(Confirmed()); err != nil {
		return err
	}
	wanted := filterOf(o)
	after := o.GetAll().GetPosition().GetCommitPosition()
	for caughtUp := false; ; {
		k.mu.Lock()
		list, changed, upTo := k.all, k.changed, k.replicated
		k.mu.Unlock()
		for _, e := range list {
			if e.position <= after || e.position > upTo {
				continue
			}
			after = e.position
			if !wanted(e.stream) {
				continue
			}
			if err := r.Send(e.response()); err != nil {
				return err
			}
		}
		if !caughtUp {
			caughtUp = true
			if err := r.Send(CaughtUp()); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// filterOf returns which streams a subscription wants.
func filterOf(o *streams.ReadReq_Options) func(string) bool {
	f := o.GetFilter().GetStreamIdentifier()
	if f.GetRegex() != "" {
		return regexp.MustCompile(f.GetRegex()).MatchString
	}
	return func(stream string) bool {
		return slices.ContainsFunc(f.GetPrefix(), func(p string) bool { return strings.HasPrefix(stream, p) })
	}
}
