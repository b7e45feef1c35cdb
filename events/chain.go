package events

import "fmt"

// Stored is one event as the log holds it, byte for byte.
type Stored struct {
	Stream         string
	Revision       uint64
	ID             [16]byte
	Type           string
	Data, Metadata []byte
}

// Recorded is one event that was read: what happened, where, when and by whom.
type Recorded struct {
	Stream   string
	Revision uint64
	ID       [16]byte
	Event    Event
	Metadata Metadata
}

// FaultKind says in which way a stream is not what was written. Each is a finding of
// its own (SPEC D4).
type FaultKind string

const (
	// FaultContent: an event's bytes are not the bytes that were written.
	FaultContent FaultKind = "content-changed"
	// FaultGap: revisions are missing, repeated or out of order.
	FaultGap FaultKind = "gap"
	// FaultFork: an event is sound in itself and names another predecessor than the
	// one before it.
	FaultFork FaultKind = "fork"
	// FaultTruncated: events are missing from an end of the stream or of the log.
	FaultTruncated FaultKind = "truncated"
	// FaultUnknownVersion: an event type or schema version that this build does not
	// know.
	FaultUnknownVersion FaultKind = "unknown-version"
	// FaultOrder: an event is sound and can not follow the events before it.
	FaultOrder FaultKind = "impossible-order"
)

// Damage is the error of a stream that is not sound. Every command on such a stream is
// refused (SPEC D5).
type Damage struct {
	Stream   string
	Revision uint64
	Kind     FaultKind
	// Reason is a full clause that says what was found.
	Reason string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("stream %s, revision %d: %s: %s", d.Stream, d.Revision, d.Kind, d.Reason)
}

// Chain is one stream, read from its first event on and then written to. It is a value:
// a copy goes on from the same place. The zero value is not usable; see Codec.Chain.
type Chain struct {
	codec  *Codec
	stream string
	next   uint64
	prev   string
}

// Chain returns the chain of a stream, before its first event.
func (c *Codec) Chain(stream string) Chain { return Chain{codec: c, stream: stream} }

// Stream returns the stream's name.
func (c *Chain) Stream() string { return c.stream }

// Next returns the revision that the next event will have, which is also the number of
// events so far.
func (c *Chain) Next() uint64 { return c.next }

// Read decodes the next event of the stream. It returns a [*Damage] error when the
// event is not at the next revision, when its bytes do not have the digest they claim,
// when it names another predecessor, or when its type, version or fields are not known.
func (c *Chain) Read(s Stored) (Recorded, error) {
	fault := func(kind FaultKind, format string, args ...any) (Recorded, error) {
		return Recorded{}, &Damage{Stream: c.stream, Revision: s.Revision, Kind: kind, Reason: fmt.Sprintf(format, args...)}
	}
	if s.Revision != c.next || s.Stream != c.stream {
		if c.next == 0 {
			return fault(FaultTruncated, "the stream does not start at revision 0")
		}
		return fault(FaultGap, "revision %d was to come next", c.next)
	}
	digest, err := s.unseal()
	if err != nil {
		return fault(FaultContent, "%s: %v", s.Type, err)
	}
	m, err := unmarshalForm[Metadata](s.Metadata)
	if err != nil {
		return fault(FaultContent, "metadata: %v", err)
	}
	if m.Prev != c.prev {
		return fault(FaultFork, "%s does not name the event before it", s.Type)
	}
	if err := m.Validate(); err != nil {
		return fault(FaultContent, "metadata: %v", err)
	}
	e, kind, err := c.codec.decode(s.Type, m.Schema, s.Data)
	if err != nil {
		return fault(kind, "%v", err)
	}
	c.next, c.prev = c.next+1, digest
	return Recorded{Stream: s.Stream, Revision: s.Revision, ID: s.ID, Event: e, Metadata: m}, nil
}

// Append encodes the next event of the stream: the bytes to be stored, and the event as
// it will be read. The chain moves on; a chain whose append was lost is thrown away.
// The error says which field may not be written.
func (c *Chain) Append(id [16]byte, e Event, m Metadata) (Stored, Recorded, error) {
	s := Stored{Stream: c.stream, Revision: c.next, ID: id, Type: e.Type()}
	// One buffer has what the digest is over, and in it what is stored.
	o := object{written: s.appendPlace(make([]byte, 0, storedSize))}
	at := o.beginField()
	version, err := c.codec.encode(&o, e)
	if err != nil {
		return Stored{}, Recorded{}, err
	}
	o.endField(at)
	s.Data = o.written[at:len(o.written):len(o.written)]
	if err := m.Validate(); err != nil {
		return Stored{}, Recorded{}, err
	}
	m.Schema, m.Prev = version, c.prev
	if s.Metadata, err = m.seal(&o); err != nil {
		return Stored{}, Recorded{}, err
	}
	c.next, c.prev = c.next+1, m.Digest
	return s, Recorded{Stream: s.Stream, Revision: s.Revision, ID: id, Event: e, Metadata: m}, nil
}

// storedSize is enough for nearly every event, with what the digest is over beside it.
const storedSize = 640
