package sqlite

// stream is what the writer knows of one stream. On an append-only log the number of a
// stream never changes, whatever other processes do; how many events it has may grow at
// any time, so that is asked again once another process has committed.
type stream struct {
	// first is the stream's number, the position of its first event; 0 if no such
	// stream was found.
	first int64
	// hash is the hash of its name, known once it was looked for.
	hash int64
	// epoch is the one in which count was last asked; see batch.
	epoch uint64
	// count is the number of events, those included that are about to be written.
	count uint64
}

// namesLimit is how many streams each of the two generations of names may hold: about
// 10 MB in all with names of 60 bytes.
const namesLimit = 1 << 15

// names remembers the streams that the writer met lately. It has two generations: when
// the young one is full, the old one is dropped and the young one becomes the old one.
type names struct {
	young, old map[string]*stream
}

func newNames() *names {
	return &names{young: make(map[string]*stream), old: make(map[string]*stream)}
}

// get returns what is remembered of a stream, an empty entry for one not met lately.
func (n *names) get(name string) *stream {
	if s := n.young[name]; s != nil {
		return s
	}
	s := n.old[name]
	if s == nil {
		s = &stream{}
	}
	if len(n.young) >= namesLimit {
		n.old, n.young = n.young, make(map[string]*stream, namesLimit)
	}
	n.young[name] = s
	return s
}

// forget drops everything, which is what a failed transaction calls for: its new
// streams do not exist.
func (n *names) forget() {
	clear(n.young)
	clear(n.old)
}
