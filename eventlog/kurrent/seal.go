package kurrent

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/google/uuid"

	"holdfast/eventlog"
)

// The server takes an append whose events have the ids of stored ones for a repetition
// of it, and answers with success, whatever the events hold: it compares ids and never
// bodies. Two claimants with one id would both be told that they have won.
//
// So the id that the server sees is the event's own, XORed with a digest of what the
// event holds. The same id with other bytes is another id to the server, which then says
// that there is a conflict; a retry of the same bytes has the same id. This costs one
// SHA-256 of the event, and no request. Reading undoes it, from the bytes that were read.

// sealDomain keeps these digests apart from all others. It must never change: the ids of
// all stored events depend on it.
const sealDomain = "holdfast/kurrent/id/v1"

// sealer computes these digests, one after another.
type sealer struct {
	hash    hash.Hash
	scratch []byte
}

func newSealer() *sealer { return &sealer{hash: sha256.New(), scratch: make([]byte, 0, 256)} }

// seal turns an event's own id into the one that the server sees, and back. The digest is
// over the domain, the type, the data and the metadata, each preceded by its length in
// bytes (64 bits, big endian).
func (s *sealer) seal(id uuid.UUID, kind string, data, metadata []byte) uuid.UUID {
	length := func(n int) { s.scratch = binary.BigEndian.AppendUint64(s.scratch, uint64(n)) }
	s.hash.Reset()
	s.scratch = s.scratch[:0]
	length(len(sealDomain))
	s.scratch = append(s.scratch, sealDomain...)
	length(len(kind))
	s.scratch = append(s.scratch, kind...)
	length(len(data))
	s.hash.Write(s.scratch)
	s.hash.Write(data)
	s.scratch = s.scratch[:0]
	length(len(metadata))
	s.hash.Write(s.scratch)
	s.hash.Write(metadata)
	s.scratch = s.hash.Sum(s.scratch[:0])
	for i := range id {
		id[i] ^= s.scratch[i]
	}
	return id
}

// sealed returns the id that the server is to see.
func (s *sealer) sealed(e *eventlog.Event) uuid.UUID { return s.seal(e.ID, e.Type, e.Data, e.Metadata) }
