// Package events is what happened: the events of every stream, how they are written
// down, and the values they are made of. It imports the standard library alone.
//
// An event is a plain struct. A [Chain] is one stream being read and written: it turns
// stored bytes into events and back, and checks on the way that the stream starts at
// revision 0, has no gap, that no event's bytes have changed, and that each names the
// one before it (SPEC D4, D5).
//
//	chain := events.NewCodec().Chain(id.Stream())
//	for _, stored := range bytesFromTheLog {
//		recorded, err := chain.Read(stored) // *Damage when the stream is not sound
//		…
//	}
//	next, err := chain.Append(freshID, events.KeyClaimed{…}, events.Metadata{…})
//
// Every event type has a schema version, kept in its metadata. Old versions are lifted
// to today's on reading, never rewritten (SPEC D3); an unknown type or version is an
// error, never skipped. The files under testdata/golden hold an event of each version
// ever written, and must decode for ever.
//
// Caveats. The digests show a change; they do not stop somebody who can rewrite a whole
// stream from computing new ones.
package events
