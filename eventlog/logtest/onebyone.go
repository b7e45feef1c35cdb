package logtest

import (
	"context"

	"holdfast/eventlog"
)

// OneByOne returns a log that applies several stream appends of one call one after
// another, each in a commit of its own, and stops at the first that fails: the weaker
// promise of an engine that cannot commit several streams together. The log that it
// is given is closed with it.
func OneByOne(log eventlog.Log) eventlog.Log { return &oneByOne{Log: log} }

type oneByOne struct{ eventlog.Log }

// Append implements [eventlog.Log].
func (o *oneByOne) Append(ctx context.Context, appends ...eventlog.StreamAppend) (eventlog.Position, error) {
	if err := eventlog.Validate(appends); err != nil {
		return 0, err
	}
	var last eventlog.Position
	for _, a := range appends {
		position, err := o.Log.Append(ctx, a)
		if err != nil {
			return 0, err
		}
		last = position
	}
	return last, nil
}
