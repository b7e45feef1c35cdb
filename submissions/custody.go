package submissions

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// CustodyTrust is how long a ledger goes on acting on a log that it has seen to be a
// ledger, before it looks again. Who turns a log into one that is not, has to wait for
// longer than that before they rely on it.
const CustodyTrust = time.Second

// custody watches whether the log is a ledger. There is no command, and no answer, that
// does not ask it: a log that is half copied would tell of a withdrawal that was paid that
// it was not, and pay it again.
//
// A command asks after it has read its streams and before it appends. Where the log began
// to be copied into, events are copied only when CustodyTrust is over: so a command that
// has read any of them asks too late to have looked before. One that has read none of them
// appends where the copy finds what it did not write, and stops.
type custody struct {
	mu     sync.Mutex // guards what follows
	state  folded[aggregate.Custody]
	looked time.Time // when the look began that state is from; zero before the first
}

// act returns the refusal of a command on a log that is not a ledger, or that cannot be
// asked whether it is.
func (c *core) act(ctx context.Context) error {
	if state, ok := c.custody.recent(c.Clock()); ok {
		return notHere(state.Act())
	}
	state, err := c.lookForCustody(ctx)
	if err != nil {
		return refusalOf(err)
	}
	return notHere(state.Act())
}

// recent returns what was seen within CustodyTrust. A clock that was set back, or that
// stood still while the machine slept, has seen nothing.
func (c *custody) recent(now time.Time) (aggregate.Custody, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, age := range []time.Duration{now.Sub(c.looked), now.Round(0).Sub(c.looked.Round(0))} {
		if c.looked.IsZero() || age < 0 || age >= CustodyTrust {
			return aggregate.Custody{}, false
		}
	}
	return c.state.state, true
}

// lookForCustody reads what the custody stream has that was not seen before.
func (c *core) lookForCustody(ctx context.Context) (aggregate.Custody, error) {
	began := c.Clock()
	c.custody.mu.Lock()
	seen := c.custody.state
	c.custody.mu.Unlock()
	state, err := readCustody(ctx, c.log, c.codec, seen)
	if err != nil {
		return aggregate.Custody{}, err
	}
	c.custody.mu.Lock()
	defer c.custody.mu.Unlock()
	if state.chain.Next() >= c.custody.state.chain.Next() {
		c.custody.state, c.custody.looked = state, began
	}
	return state.state, nil
}

// readCustody goes on from what was seen of the custody stream.
func readCustody(ctx context.Context, log eventlog.Log, codec *events.Codec, f folded[aggregate.Custody]) (folded[aggregate.Custody], error) {
	if f.chain.Stream() == "" {
		f.chain = codec.Chain(events.CustodyStream)
	}
	for stored, err := range log.ReadStream(ctx, events.CustodyStream, f.chain.Next()) {
		if err == nil {
			_, err = f.read(stored)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// notHere is the refusal of a command on a log that is not a ledger.
func notHere(err error) error {
	var no *aggregate.NoLedger
	if !errors.As(err, &no) {
		return err
	}
	return &Refusal{Code: aggregate.CodeUnavailable, Cause: no, Since: no.Since,
		Message: "this log is not the ledger; nothing was done, and the same key is safe to retry where the ledger is"}
}

// Custody returns whether a log is a ledger, as its custody stream says, and the chain
// that the stream's next event is appended to. It returns
// [*events.Damage] or [*eventlog.Damaged] for a stream that is not sound, and the errors
// of [eventlog.Log.ReadStream].
func Custody(ctx context.Context, log eventlog.Log) (aggregate.Custody, events.Chain, error) {
	f, err := readCustody(ctx, log, events.NewCodec(), folded[aggregate.Custody]{})
	return f.state, f.chain, err
}
