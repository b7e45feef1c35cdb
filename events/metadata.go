package events

import (
	"bytes"
	"crypto/sha256"
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

// seal marshals the metadata and closes it with the digest of the whole event.
func (m Metadata) seal(s *Stored) (stored []byte, digest string, err error) {
	m.Digest = ""
	open, err := json.Marshal(m)
	if err != nil {
		return nil, "", err
	}
	open = open[:len(open)-1] // the closing brace
	digest = s.digest(open)
	stored = make([]byte, 0, len(open)+len(digestMark)+digestWidth+len(digestEnd))
	stored = append(stored, open...)
	stored = append(stored, digestMark...)
	stored = append(stored, digest...)
	return append(stored, digestEnd...), digest, nil
}

// unseal returns the digest that the stored event claims and the one that its bytes
// have.
func (s *Stored) unseal() (claimed, actual string, err error) {
	open := len(s.Metadata) - len(digestMark) - digestWidth - len(digestEnd)
	if open < 1 || !bytes.HasPrefix(s.Metadata[open:], []byte(digestMark)) || !bytes.HasSuffix(s.Metadata, []byte(digestEnd)) {
		return "", "", errors.New("its metadata does not end in a digest")
	}
	claimed = string(s.Metadata[open+len(digestMark) : open+len(digestMark)+digestWidth])
	return claimed, s.digest(s.Metadata[:open]), nil
}

// digest is SHA-256 over the event's place and content: stream, revision (decimal), id
// (hexadecimal), type, data, and the metadata up to the digest itself, each preceded by
// its length.
func (s *Stored) digest(openMetadata []byte) string {
	var room [2048]byte // enough for nearly every event, and not on the heap
	var number [20]byte
	input := appendField(room[:0], "holdfast/event/v1")
	input = appendField(input, s.Stream)
	input = appendField(input, strconv.AppendUint(number[:0], s.Revision, 10))
	input = appendField(input, hex.EncodeToString(s.ID[:]))
	input = appendField(input, s.Type)
	input = appendField(input, s.Data)
	input = appendField(input, openMetadata)
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:])
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
