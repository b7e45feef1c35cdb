package kurrentnode

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// verdict is what the server makes of an append.
type verdict int

const (
	// fresh: it is written.
	fresh verdict = iota
	// repeated: its events are there, and it is answered as they were.
	repeated
	// unready: its events are there, and not on enough nodes. It is dropped.
	unready
	// wrong: the stream is not where the append expects it.
	wrong
	// gone: the stream was deleted for good, or is taken to be.
	gone
	// deposed: the node leads no more, and decides nothing.
	deposed
)

// decision is a verdict with what its answer needs.
type decision struct {
	verdict verdict
	// last is the last event of an append that is fresh or repeated.
	last *event
	// lost says that a repeated append's events cannot be read any more.
	lost bool
	// term is the election before the decision.
	term int
}

// decide decides an append, as the server's index writer does, and writes it where it is
// fresh. What it decides against is all that is written, whether or not it can be read.
func (k *Streams) decide(o *streams.AppendReq_Options, proposed []*streams.AppendReq_ProposedMessage) decision {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.leads() { // since the request was handed to this node
		return decision{verdict: deposed}
	}
	name := string(o.GetStreamIdentifier().GetStreamName())
	s := k.streams[name]
	if s == nil {
		s = &stream{}
	}
	d := k.check(name, s, o, proposed)
	d.term = k.term
	switch d.verdict {
	case repeated:
		d.lost = d.last.removed || d.last.revision < s.begins
		if d.last.index >= k.committed {
			d.verdict = unready
		}
	case fresh:
		for _, p := range proposed {
			d.last = k.write(eventOf(name, p))
		}
		k.replicate()
	}
	return d
}

// check compares what an append expects with what there is.
func (k *Streams) check(name string, s *stream, o *streams.AppendReq_Options, proposed []*streams.AppendReq_ProposedMessage) decision {
	at := uint64(0) // the revision that the append expects to get
	switch expected := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		at = expected.Revision + 1
	case *streams.AppendReq_Options_StreamExists:
		switch {
		case s.gone || s.deleted():
			return decision{verdict: gone}
		case s.length == 0:
			return decision{verdict: wrong}
		}
		return k.checkRecent(name, proposed)
	case *streams.AppendReq_Options_Any:
		if s.gone {
			return decision{verdict: gone}
		}
		return k.checkRecent(name, proposed)
	}
	switch {
	case s.gone:
		return decision{verdict: gone}
	case at > s.length:
		return decision{verdict: wrong}
	case at == s.length: // also where the same ids are elsewhere in the stream
		return decision{verdict: fresh}
	}
	var last *event
	for i, p := range proposed {
		e := s.events[at+uint64(i)]
		switch {
		case e != nil && e.id == idOf(p.GetId()):
			last = e
		case i == 0 && at == 0 && s.deleted():
			return decision{verdict: fresh}
		default: // also where only the first ones are the same
			return decision{verdict: wrong}
		}
	}
	return decision{verdict: repeated, last: last}
}

// checkRecent looks for an append that expects no revision among the ids that the node
// remembers.
func (k *Streams) checkRecent(name string, proposed []*streams.AppendReq_ProposedMessage) decision {
	var last *event
	for i, p := range proposed {
		e := k.recent[recentID{name, idOf(p.GetId())}]
		switch {
		case e == nil && i == 0:
			return decision{verdict: fresh}
		case e == nil:
			return decision{verdict: wrong}
		}
		last = e
	}
	return decision{verdict: repeated, last: last}
}

// tooLarge returns the limit that an append is over, or 0.
func (k *Streams) tooLarge(proposed []*streams.AppendReq_ProposedMessage) int {
	sum := 0
	for _, p := range proposed {
		size := len(p.GetData()) + len(p.GetCustomMetadata()) + 2*len(p.GetMetadata()["type"])
		if size > k.MaxEvent {
			return k.MaxEvent
		}
		sum += size
	}
	if sum > k.MaxAppend {
		return k.MaxAppend
	}
	return 0
}

// metadataOf returns the stream whose metadata a stream holds.
func metadataOf(name string) (of string, ok bool) { return strings.CutPrefix(name, "$$") }

// beginsOf returns where metadata lets a stream begin. Whatever else there may be in
// metadata takes no effect here.
func beginsOf(data []byte) *uint64 {
	var m struct {
		Begins uint64 `json:"$tb"`
	}
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	m.Begins = min(m.Begins, math.MaxInt64)
	return &m.Begins
}
