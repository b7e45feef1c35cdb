package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Metadata is what is known about an event beside what happened.
type Metadata struct {
	// Schema is the schema version that the event was written in. It is set by
	// Chain.Append.
	Schema int `json:"schema"`
	// RecordedAt is when the event was made, by the clock of the process that made it.
	RecordedAt Timestamp `json:"recorded_at"`
	// Actor is who caused the event.
	Actor string `json:"actor"`
	// CorrelationID, CausationID and Traceparent tie the event to what it was part
	// of, as the caller named it (Traceparent as in W3C Trace Context). Each may be
	// empty.
	CorrelationID string `json:"correlation_id,omitempty"`
	CausationID   string `json:"causation_id,omitempty"`
	Traceparent   string `json:"traceparent,omitempty"`
	// Prev is the digest of the event before this one in its stream; empty for the
	// first. It is set by Chain.Append.
	Prev string `json:"prev,omitempty"`
	// Digest is SHA-256, in hexadecimal, over everything else that is stored of the
	// event and over where it is stored. It is set by Chain.Append.
	Digest string `json:"digest,omitempty"`
}

// MaxTrace is the longest correlation id, causation id or traceparent, in bytes.
const MaxTrace = 255

// Validate returns an error when what the caller sets of the metadata is missing, too
// long or unprintable.
func (m Metadata) Validate() error {
	err := errors.Join(ValidateName("actor", m.Actor), check(!m.RecordedAt.IsZero(), "recorded_at is missing"))
	for _, f := range []struct{ name, value string }{
		{"correlation id", m.CorrelationID}, {"causation id", m.CausationID}, {"traceparent", m.Traceparent},
	} {
		if f.value != "" {
			err = errors.Join(err, validateText(f.name, f.value, MaxTrace))
		}
	}
	return err
}

// The digest is the last field of the stored metadata, so that it can be checked over
// the stored bytes themselves: what comes before it, up to and without this mark.
const (
	digestMark  = `,"digest":"`
	digestEnd   = `"}`
	digestWidth = 2 * sha256.Size
)

// seal sets the digest: it writes the metadata behind everything else that the digest is
// over, and closes it with that digest. It returns what is stored of it.
func (m *Metadata) seal(o *object) (stored []byte, err error) {
	m.Digest = ""
	at := o.beginField()
	o.before = '{'
	if m.fields(o); o.err != nil {
		return nil, o.err
	}
	o.endField(at) // without the brace that is going to close it
	sum := sha256.Sum256(o.written)
	o.written = append(o.written, digestMark...)
	o.written = hex.AppendEncode(o.written, sum[:])
	m.Digest = string(o.written[len(o.written)-digestWidth:])
	o.written = append(o.written, digestEnd...)
	return o.written[at:], nil
}

// fields is what the tags say, in that order.
func (m *Metadata) fields(o *object) {
	number(o, "schema", &m.Schema)
	timestamp(o, "recorded_at", &m.RecordedAt)
	text(o, "actor", &m.Actor)
	optionalText(o, "correlation_id", &m.CorrelationID)
	optionalText(o, "causation_id", &m.CausationID)
	optionalText(o, "traceparent", &m.Traceparent)
	optionalText(o, "prev", &m.Prev)
	optionalText(o, "digest", &m.Digest)
}

// unseal returns the digest that the event's bytes have, in hexadecimal. It returns an
// error when the event claims another one, or none.
func (s *Stored) unseal() (digest string, err error) {
	open := len(s.Metadata) - len(digestMark) - digestWidth - len(digestEnd)
	if open < 1 || !bytes.HasPrefix(s.Metadata[open:], []byte(digestMark)) || !bytes.HasSuffix(s.Metadata, []byte(digestEnd)) {
		return "", errors.New("its metadata does not end in a digest")
	}
	sum := s.digest(s.Metadata[:open])
	digest = hex.EncodeToString(sum[:])
	if digest != string(s.Metadata[open+len(digestMark):open+len(digestMark)+digestWidth]) {
		return "", errors.New("its bytes do not have the digest that they were written with")
	}
	return digest, nil
}

// digest is SHA-256 over the event's place and content: stream, revision (decimal), id
// (hexadecimal), type, data, and the metadata up to the digest itself, each preceded by
// its length.
func (s *Stored) digest(openMetadata []byte) [sha256.Size]byte {
	var room [2048]byte // enough for nearly every event, and not on the heap
	input := appendField(s.appendPlace(room[:0]), s.Data)
	return sha256.Sum256(appendField(input, openMetadata))
}

// beginField makes room for the length of a field of the digest's input that is going to
// be written, and returns where it begins. endField then fills in its length.
func (o *object) beginField() (at int) {
	o.written = append(o.written, 0, 0, 0, 0, 0, 0, 0, 0)
	return len(o.written)
}

func (o *object) endField(at int) {
	binary.BigEndian.PutUint64(o.written[at-8:], uint64(len(o.written)-at))
}

// appendPlace appends what the digest is over before the data.
func (s *Stored) appendPlace(input []byte) []byte {
	var text [32]byte
	input = appendField(input, "holdfast/event/v1")
	input = appendField(input, s.Stream)
	input = appendField(input, strconv.AppendUint(text[:0], s.Revision, 10))
	input = appendField(input, hex.AppendEncode(text[:0], s.ID[:]))
	return appendField(input, s.Type)
}

// unmarshalStrict is json.Unmarshal that refuses unknown fields and trailing text:
// stored data is exactly what we wrote, or it is not ours.
func unmarshalStrict(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.InputOffset() != int64(len(data)) {
		return fmt.Errorf("unexpected text after byte %d", decoder.InputOffset())
	}
	return nil
}
