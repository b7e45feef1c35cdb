package eventlog

// Dense is implemented by a Log whose positions leave none out: 1, 2, 3 and so on. In
// such a log a missing position shows that events were taken out.
type Dense interface {
	Log
	// DensePositions does nothing; having it is the statement.
	DensePositions()
}
