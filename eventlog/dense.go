package eventlog

import "context"

// Dense is implemented by a Log whose positions leave none out: 1, 2, 3 and so on. In
// such a log a missing position shows that events were taken out, which readers of the
// whole log have to look for themselves: ReadAll and Follow deliver what is there.
type Dense interface {
	Log
	// DensePositions does nothing; having it is the statement.
	DensePositions()
}

// Headed is implemented by a Log that can say where it ends, for instance to show how
// far a reading of all of it is. In a log that is also Dense, the position of the last
// event is the number of events that were ever appended.
type Headed interface {
	Log
	// Head returns the position of the last event, or Start when there is none.
	// Errors as for ReadAll.
	Head(ctx context.Context) (Position, error)
}
