package kurrent

import (
	"crypto/sha256"
	"encoding/binary"

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

// seal turns an event's own id into the one that the server sees, and back.
func seal(id uuid.UUID, kind string, data, metadata []byte) uuid.UUID {
	h := sha256.New()
	var length [8]byte
	write := func(field []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		h.Write(length[:])
		h.Write(field)
	}
	write([]byte(sealDomain))
	write([]byte(kind))
	write(data)
	write(metadata)
	var sum [sha256.Size]byte
	for i, b := range h.Sum(sum[:0])[:len(id)] {
		id[i] ^= b
	}
	return id
}

// sealed returns the id that the server is to see.
func sealed(e *eventlog.Event) uuid.UUID { return seal(e.ID, e.Type, e.Data, e.Metadata) }
