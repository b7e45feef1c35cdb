package kurrentnode

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// find returns what a reading is answered with: events, or that there is no such stream.
func (k *Streams) find(o *streams.ReadReq_Options) (events []*event, absent, gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if from := o.GetStream(); from != nil {
		s := k.streams[string(from.GetStreamIdentifier().GetStreamName())]
		switch {
		case s != nil && s.gone:
			return nil, false, true
		case s == nil || s.deleted() || !(s.first != nil && s.first.index < k.committed):
			return nil, true, false
		}
		events = k.ofStream(s, from, o.GetReadDirection() == streams.ReadReq_Options_Backwards)
	} else {
		events = k.ofAll(o.GetAll(), o.GetReadDirection() == streams.ReadReq_Options_Backwards)
	}
	return events[:min(uint64(len(events)), o.GetCount())], false, false
}

func (k *Streams) ofStream(s *stream, o *streams.ReadReq_Options_StreamOptions, backwards bool) (events []*event) {
	from, to := s.begins, s.length
	if revision, ok := o.GetRevisionOption().(*streams.ReadReq_Options_StreamOptions_Revision); ok && backwards {
		to = min(to, revision.Revision+1)
	} else if ok {
		from = max(from, revision.Revision)
	}
	for r := from; r < to; r++ {
		if k.readable(s.events[r]) {
			events = append(events, s.events[r])
		}
	}
	if backwards {
		slices.Reverse(events)
	}
	return events
}

func (k *Streams) ofAll(o *streams.ReadReq_Options_AllOptions, backwards bool) (events []*event) {
	from, to := 0, k.committed
	if p := o.GetPosition(); p != nil && backwards {
		to = k.since(p.CommitPosition)
	} else if p != nil {
		from = k.since(p.CommitPosition)
	}
	for _, e := range k.all[from:to] {
		if !e.removed {
			events = append(events, e)
		}
	}
	if backwards {
		slices.Reverse(events)
	}
	return events
}

// since returns where the events that can be read begin that are at a position or after.
func (k *Streams) since(position uint64) int {
	i, _ := slices.BinarySearchFunc(k.all[:k.committed], position, func(e *event, p uint64) int { return cmp.Compare(e.position, p) })
	return i
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
	if o.GetSubscription() != nil {
		return k.follow(o, r)
	}
	events, absent, gone := k.find(o)
	switch {
	case gone:
		return Gone(r, string(o.GetStream().GetStreamIdentifier().GetStreamName()))
	case absent:
		return r.Send(NotFound(o))
	}
	for _, e := range events {
		if err := r.Send(e.response()); err != nil {
			return err
		}
	}
	return nil
}

// follow sends what is wanted of all streams, and goes on until the client leaves, or
// another node leads.
func (k *Streams) follow(o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
	if err := r.Send(Confirmed()); err != nil {
		return err
	}
	wanted := filterOf(o)
	k.mu.Lock()
	term := k.term
	k.mu.Unlock()
	after := o.GetAll().GetPosition().GetCommitPosition()
	for caughtUp := false; ; {
		k.mu.Lock()
		events, changed, now := k.ofAll(at(after+1), false), k.changed, k.term
		k.mu.Unlock()
		if now != term {
			return status.Error(codes.Aborted, "the node has changed its role")
		}
		for _, e := range events {
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

func at(position uint64) *streams.ReadReq_Options_AllOptions {
	return &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Position{
		Position: &streams.ReadReq_Options_Position{CommitPosition: position, PreparePosition: position},
	}}
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
