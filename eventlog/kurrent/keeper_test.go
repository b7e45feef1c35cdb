package kurrent

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// keeper keeps streams as the server does, as far as an event log sees of it.
type keeper struct {
	mu      sync.Mutex
	all     []*kept
	streams map[string]*keptStream
	next    uint64
	changed chan struct{}
}

type kept struct {
	id                   [2]int64
	stream               string
	revision, position   uint64
	system               map[string]string
	data, customMetadata []byte
}

type keptStream struct {
	events map[uint64]*kept
	length uint64 // one more than the last revision
	begins uint64 // $tb
	tomb   bool
}

func newKeeper() *keeper {
	return &keeper{streams: map[string]*keptStream{}, next: 1000, changed: make(chan struct{})}
}

func (s *keptStream) deleted() bool { return s.begins == math.MaxInt64 }

// append decides an append as the server's index writer does.
func (k *keeper) append(o *streams.AppendReq_Options, proposed []*streams.AppendReq_ProposedMessage) *streams.AppendResp {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := string(o.GetStreamIdentifier().GetStreamName())
	s := k.streams[name]
	if s == nil {
		s = &keptStream{events: map[uint64]*kept{}}
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
			return took(last, s.events[last].position)
		case same == len(proposed):
			return took(last, 0)
		case same > 0 || at > 0 || !s.deleted():
			return lost()
		}
	} else if at > s.length {
		return lost()
	}
	if s.deleted() {
		s.begins = s.length
	}
	k.streams[name] = s
	var last *kept
	for _, p := range proposed {
		last = k.write(name, s, p)
	}
	return took(last.revision, last.position)
}

func (s *keptStream) holds(revision uint64, p *streams.AppendReq_ProposedMessage) bool {
	e, id := s.events[revision], p.GetId().GetStructured()
	return e != nil && e.id == [2]int64{id.GetMostSignificantBits(), id.GetLeastSignificantBits()}
}

func (k *keeper) write(name string, s *keptStream, p *streams.AppendReq_ProposedMessage) *kept {
	id := p.GetId().GetStructured()
	e := &kept{
		id: [2]int64{id.GetMostSignificantBits(), id.GetLeastSignificantBits()}, stream: name, revision: s.length, position: k.next,
		system: map[string]string{"created": "17000000000000000"}, data: p.GetData(), customMetadata: p.GetCustomMetadata(),
	}
	for key, value := range p.GetMetadata() {
		e.system[key] = value
	}
	k.next += 100 + uint64(len(e.data))
	s.events[s.length] = e
	s.length++
	k.all = append(k.all, e)
	close(k.changed)
	k.changed = make(chan struct{})
	return e
}

// delete soft-deletes a stream, as an operator does.
func (k *keeper) delete(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.streams[name].begins = math.MaxInt64
	k.note(name, `{"$tb":9223372036854775807}`)
}

// note appends to a stream's metadata.
func (k *keeper) note(name, metadata string) {
	name = "$$" + name
	if k.streams[name] == nil {
		k.streams[name] = &keptStream{events: map[uint64]*kept{}}
	}
	k.write(name, k.streams[name], &streams.AppendReq_ProposedMessage{Data: []byte(metadata), Metadata: map[string]string{"type": "$metadata"}})
}

// remove takes one event out of the log.
func (k *keeper) remove(name string, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.streams[name].events[revision]
	delete(k.streams[name].events, revision)
	k.all = slices.DeleteFunc(k.all, func(x *kept) bool { return x == e })
}

// find returns what a reading is answered with: events, or that there is no such stream.
func (k *keeper) find(o *streams.ReadReq_Options) (found []*kept, absent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	backwards := o.GetReadDirection() == streams.ReadReq_Options_Backwards
	if from := o.GetStream(); from != nil {
		s := k.streams[string(from.GetStreamIdentifier().GetStreamName())]
		if s == nil || s.deleted() {
			return nil, true
		}
		for r := max(from.GetRevision(), s.begins); r < s.length; r++ {
			if s.events[r] != nil {
				found = append(found, s.events[r])
			}
		}
	} else {
		for _, e := range k.all {
			if p := o.GetAll().GetPosition(); p == nil || backwards && e.position < p.CommitPosition || !backwards && e.position >= p.CommitPosition {
				found = append(found, e)
			}
		}
	}
	if backwards {
		slices.Reverse(found)
	}
	return found[:min(uint64(len(found)), o.GetCount())], false
}

func (e *kept) response() *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id:               &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{MostSignificantBits: e.id[0], LeastSignificantBits: e.id[1]}}},
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(e.stream)}, StreamRevision: e.revision,
			CommitPosition: e.position, PreparePosition: e.position, Metadata: e.system, CustomMetadata: e.customMetadata, Data: e.data,
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: e.position},
	}}}
}

func (k *keeper) read(o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
	if o.GetSubscription() != nil {
		return k.follow(o, r)
	}
	found, absent := k.find(o)
	if absent {
		return r.Send(notFound(&streams.ReadReq{Options: o}))
	}
	for _, e := range found {
		if err := r.Send(e.response()); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) follow(o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
	confirm := &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: "x"}
	if err := r.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{Confirmation: confirm}}); err != nil {
		return err
	}
	wanted := filterOf(o)
	after, caughtUp := o.GetAll().GetPosition().GetCommitPosition(), false
	for {
		k.mu.Lock()
		list, changed := k.all, k.changed
		k.mu.Unlock()
		for _, e := range list {
			if e.position <= after {
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
			if err := r.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}}); err != nil {
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

func filterOf(o *streams.ReadReq_Options) func(string) bool {
	f := o.GetFilter().GetStreamIdentifier()
	if f.GetRegex() != "" {
		return regexp.MustCompile(f.GetRegex()).MatchString
	}
	return func(stream string) bool {
		return slices.ContainsFunc(f.GetPrefix(), func(p string) bool { return strings.HasPrefix(stream, p) })
	}
}

func (e *kept) String() string { return fmt.Sprintf("%s@%d", e.stream, e.revision) }
