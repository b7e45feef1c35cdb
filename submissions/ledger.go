package submissions

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// The names that callers meet, from the packages that define them.
type (
	// Refusal is the error of every method: see aggregate.Refusal.
	Refusal = aggregate.Refusal
	// Restated is what a caller believes it is paying: see aggregate.Restated.
	Restated = aggregate.Restated
	// Code says in which way a command was refused: see aggregate.Code.
	Code = aggregate.Code
)

// CodeOf returns the code of the refusal in err's chain, and false when there is none.
func CodeOf(err error) (Code, bool) { return aggregate.CodeOf(err) }

// Defaults and limits of Options.
const (
	DefaultSendTimeout = 30 * time.Second
	MaxSendTimeout     = 24 * time.Hour
	DefaultClockMargin = time.Minute
	DefaultPatience    = 10 * time.Second
	// grace is how long a Submit whose send ought to have ended waits for the rail's
	// answer before it says that the outcome is unknown. It decides nothing else.
	grace = time.Second
	// maxRounds is how often one command decides again after losing a race. Each loss
	// means that another command went through.
	maxRounds = 1000
	// maxUnseen is how often one command decides again after losing a race to what cannot
	// be read yet, and unseenPause half of the pause after the first time; each is twice
	// as long as the one before.
	maxUnseen   = 4
	unseenPause = 10 * time.Millisecond
)

// Options are the settings of a Ledger. The zero value of each field, and a nil
// *Options, mean the default.
type Options struct {
	// SendTimeout is how long a rail call may take before its context ends:
	// DefaultSendTimeout by default, MaxSendTimeout at most.
	SendTimeout time.Duration
	// ClockMargin is how far clocks may disagree: an attempt that has not reported is
	// taken for running until its deadline is that long ago. DefaultClockMargin by
	// default.
	ClockMargin time.Duration
	// Patience is how long an append whose result is not known is tried again, where
	// the caller's context does not end before: DefaultPatience by default.
	Patience time.Duration
	// Clock tells the time; time.Now by default.
	Clock func() time.Time
	// NewID makes event ids: random, never twice the same. uuid.New by default.
	NewID func() uuid.UUID
	// Logger is told of rail's answers that the log does not take; slog.Default() by
	// default.
	Logger *slog.Logger
	// Finals makes repeats cheaper; there is none by default.
	Finals Finals
}

// Ledger runs commands for one tenant on a log. It is safe for concurrent use, and any
// number of ledgers, in any number of processes, may share a log.
type Ledger struct {
	*core
	tenant events.Tenant
}

// core is what the ledgers of all tenants share.
type core struct {
	Options
	log     eventlog.Log
	codec   *events.Codec
	streams *streams
	custody custody

	mu      sync.Mutex // guards closing, and that nothing starts once it is set
	closing bool
	running sync.WaitGroup // attempts whose answer is not recorded yet
}

// New returns a ledger for the default tenant on a log, which stays the caller's to
// close. An option that is negative or over its limit is an invalid-request refusal.
func New(log eventlog.Log, o *Options) (*Ledger, error) {
	c := &core{log: log, codec: events.NewCodec()}
	if o != nil {
		c.Options = *o
	}
	for _, d := range []struct {
		name    string
		value   *time.Duration
		initial time.Duration
		most    time.Duration
	}{
		{"send timeout", &c.SendTimeout, DefaultSendTimeout, MaxSendTimeout},
		{"clock margin", &c.ClockMargin, DefaultClockMargin, MaxSendTimeout},
		{"patience", &c.Patience, DefaultPatience, MaxSendTimeout},
	} {
		if *d.value == 0 {
			*d.value = d.initial
		}
		if *d.value < 0 || *d.value > d.most {
			return nil, aggregate.Invalid(fmt.Errorf("%s %s must be more than zero and at most %s", d.name, *d.value, d.most))
		}
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.NewID == nil {
		c.NewID = uuid.New
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.streams = newStreams(c.log, c.codec)
	return &Ledger{core: c, tenant: events.DefaultTenant}, nil
}

// For returns the ledger of another tenant on the same log. Keys and withdrawals of
// other tenants are not found there (A14). A malformed name is refused by each command.
func (l *Ledger) For(tenant events.Tenant) *Ledger {
	return &Ledger{core: l.core, tenant: tenant}
}

// Close refuses new submissions and waits until the answer of every attempt under way
// is recorded, or until the context ends; its error then says so, and what was not
// answered stays in flight, truthfully. Closing the ledger of one tenant closes all of
// the same log.
func (l *Ledger) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		l.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("submissions: closed with attempts still under way; they stay in flight: %w", context.Cause(ctx))
	}
}

// begin admits a submission, and says no once the ledger is closing.
func (c *core) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return unavailable(eventlog.ErrClosed)
	}
	c.running.Add(1)
	return nil
}

// By says who acts, and as part of what. It goes into the metadata of every event.
type By struct {
	// Actor is who acts: a person, a service. Resolve and Release require it; for the
	// other commands it is "unnamed" where nobody cares.
	Actor string
	// CorrelationID, CausationID and Traceparent tie the events to what they were part
	// of (Traceparent as in W3C Trace Context). Each may be empty.
	CorrelationID string
	CausationID   string
	Traceparent   string
}

func (b By) metadata(now time.Time) events.Metadata {
	m := events.Metadata{
		RecordedAt: events.At(now), Actor: b.Actor,
		CorrelationID: b.CorrelationID, CausationID: b.CausationID, Traceparent: b.Traceparent,
	}
	if m.Actor == "" {
		m.Actor = "unnamed"
	}
	return m
}
