package sqlite

import (
	"crypto/sha256"
	"encoding/binary"

	"holdfast/eventlog"
)

// digest is SHA-256 of a stream's name. It stands for the name in memory: without a
// pointer in it, the garbage collector has nothing to do with the tens of thousands that
// are remembered.
type digest [sha256.Size]byte

func digestOf(name string) digest {
	var room [eventlog.MaxStreamName]byte // not on the heap
	return sha256.Sum256(append(room[:0], name...))
}

// hash is the first 64 bits of the digest, which the file has an index on.
func (d *digest) hash() int64 { return int64(binary.BigEndian.Uint64(d[:8])) }

// stream is what the writer knows of one stream. On an append-only log the number of a
// stream never changes, whatever other processes do; how many events it has may grow at
// any time, so that is asked again once another process has committed.
type stream struct {
	// first is the stream's number, the position of its first event; 0 if no such
	// stream was found.
	first int64
	// epoch is the one in which count was last asked; see batch.
	epoch uint64
	// count is the number of events, those included that are about to be written.
	count uint64
}

// namesLimit is how many streams each of the two generations of names may hold: about
// 5 MB in all.
const namesLimit = 1 << 15

// names remembers the streams that the writer met lately. It has two generations: when
// the young one is full, the old one is dropped and the young one becomes the old one.
type names struct {
	young, old map[digest]stream
}

func newNames() *names {
	return &names{young: make(map[digest]stream), old: make(map[digest]stream)}
}

// get returns what is remembered of a stream: nothing of one not met lately.
func (n *names) get(name digest) stream {
	if s, ok := n.young[name]; ok {
		return s
	}
	return n.old[name]
}

// put remembers a stream as it is now.
func (n *names) put(name digest, s stream) {
	n.young[name] = s
	if len(n.young) >= namesLimit {
		n.old, n.young = n.young, make(map[digest]stream, namesLimit)
	}
}

// forget drops everything, which is what a failed transaction calls for: its new
// streams do not exist.
func (n *names) forget() {
	clear(n.young)
	clear(n.old)
}
