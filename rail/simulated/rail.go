package simulated

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"holdfast/events"
	"holdfast/rail"
)

// ErrFault is returned by Send under FaultErrorBefore and FaultErrorAfter. It does not
// say which of the two it was.
var ErrFault = errors.New("simulated: the connection to the rail broke")

// refusalReason is the reason of every refusal.
const refusalReason = "the simulated rail was told to refuse"

// Options of a Rail. The zero value of each field is fine.
type Options struct {
	// Fault decides how a send fails. It is called once for each send, from the
	// goroutine of the send. Nil means FaultNone for each.
	Fault func(rail.Payment) Fault
	// HonourToken makes the rail pay once for each token: a second send gets the first
	// reference again, and nothing is booked. A send without a token is always paid. A
	// refusal does not use up a token. The same token for another payment is an error,
	// and nothing left.
	HonourToken bool
	// Latency is how long a send takes before anything happens. A send whose context
	// ends meanwhile returns the context's error, and nothing left. It does not apply
	// to FaultLate.
	Latency time.Duration
	// Late is how long after the end of its context a send answers under FaultLate.
	Late time.Duration
	// Die ends the process under FaultDieBefore and FaultDieAfter; nil sends SIGKILL to
	// it. It is for tests. If it returns, Send blocks for ever.
	Die func()
	// Now is the clock that entries are booked by; nil is time.Now.
	Now func() time.Time
	// NewReference mints the reference of a payment, which must be unique within the
	// book; nil gives "sim-" and 16 random hexadecimal digits.
	NewReference func() string
}

// Rail is the simulated rail. It may be used from any goroutine, and holds nothing open
// between two calls.
type Rail struct {
	opts Options
	book *book
}

var _ rail.Rail = (*Rail)(nil)

// Open returns a rail that books in the file at path, which it creates when there is
// none; its directory must exist. A file that is not a book is a [*Damaged] error and is
// left as it is; only its first line and its end are looked at. A directory, another
// kind of file, one that cannot be written, or a negative duration in opts is an error
// that says so. Nil opts are the zero Options.
func Open(path string, opts *Options) (*Rail, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Latency < 0 || o.Late < 0 {
		return nil, fmt.Errorf("simulated: latency (%v) and late (%v) must not be negative", o.Latency, o.Late)
	}
	if o.Fault == nil {
		o.Fault = func(rail.Payment) Fault { return FaultNone }
	}
	if o.Die == nil {
		o.Die = func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewReference == nil {
		o.NewReference = randomReference
	}
	r := &Rail{opts: o, book: &book{path: path, now: o.Now}}
	if err := r.book.create(); err != nil {
		return nil, err
	}
	return r, nil
}

// Name returns "simulated".
func (r *Rail) Name() string { return "simulated" }

// Send books the payment and returns a receipt with a fresh reference, unless
// Options.Fault decides otherwise. It returns a *rail.Refusal under FaultRefuse, the
// context's error when that ended before the money left or under a timeout, [ErrFault],
// a [*Damaged] book, or an error that says why the payment cannot be booked. After any
// of them but the refusal, only the book says whether the money left.
func (r *Rail) Send(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
	fault := r.opts.Fault(p)
	if fault == "" {
		fault = FaultNone
	}
	if _, err := ParseFault(string(fault)); err != nil {
		return rail.Receipt{}, fmt.Errorf("simulated: nothing left: %w", err)
	}
	if err := r.arrive(ctx, fault); err != nil {
		return rail.Receipt{}, err
	}
	switch fault {
	case FaultRefuse:
		return r.refuse(p)
	case FaultErrorBefore:
		return rail.Receipt{}, ErrFault
	case FaultTimeoutBefore:
		<-ctx.Done()
		return rail.Receipt{}, ended(ctx)
	case FaultDieBefore:
		r.die()
	case FaultPanicBefore:
		panic("simulated: a panic before the money left")
	}
	booked, err := r.pay(p)
	if err != nil {
		return rail.Receipt{}, err
	}
	switch fault {
	case FaultErrorAfter:
		return rail.Receipt{}, ErrFault
	case FaultTimeoutAfter:
		<-ctx.Done()
		return rail.Receipt{}, ended(ctx)
	case FaultDieAfter:
		r.die()
	case FaultPanicAfter:
		panic("simulated: a panic after the money left")
	case FaultNoReference:
		booked.Reference = ""
	}
	return receiptOf(booked)
}

// arrive waits until the payment has reached the rail. Its error means that it never
// does.
func (r *Rail) arrive(ctx context.Context, fault Fault) error {
	if fault == FaultLate {
		<-ctx.Done()
		<-time.After(r.opts.Late)
		return nil
	}
	if r.opts.Latency > 0 {
		timer := time.NewTimer(r.opts.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return nil
}

// pay books the payment: from then on the money has left.
func (r *Rail) pay(p rail.Payment) (Entry, error) {
	draft := entryOf(p)
	draft.Reference = r.opts.NewReference()
	return r.book.append(draft, r.opts.HonourToken)
}

// refuse books the refusal, so that LookUp knows of it, before it asserts it. A token
// that is honoured and has paid gets its receipt: to refuse it would be a lie.
func (r *Rail) refuse(p rail.Payment) (rail.Receipt, error) {
	draft := entryOf(p)
	draft.Refused, draft.Reason = true, refusalReason
	booked, err := r.book.append(draft, r.opts.HonourToken)
	if err != nil {
		return rail.Receipt{}, err
	}
	if !booked.Refused {
		return receiptOf(booked)
	}
	response, err := responseOf(answer{Status: "refused", Reason: booked.Reason})
	if err != nil {
		return rail.Receipt{}, err
	}
	return rail.Receipt{}, &rail.Refusal{Reason: booked.Reason, Response: response}
}

// die ends the process. The signal may take a moment to arrive, and nothing may happen
// in it.
func (r *Rail) die() {
	r.opts.Die()
	select {}
}

// ended is the error of a context that has ended.
func ended(ctx context.Context) error {
	return fmt.Errorf("simulated: no answer from the rail: %w", ctx.Err())
}

func entryOf(p rail.Payment) Entry {
	return Entry{
		Withdrawal:  p.Withdrawal,
		Account:     p.Account,
		Amount:      p.Amount,
		Currency:    p.Currency,
		Destination: p.Destination,
		Token:       p.Token,
		Attempt:     p.Attempt,
	}
}

// answer is the body of the rail's response.
type answer struct {
	Reference string `json:"reference,omitempty"`
	Status    string `json:"status"`
	Reason    string `json:"reason,omitempty"`
}

func receiptOf(booked Entry) (rail.Receipt, error) {
	response, err := responseOf(answer{Reference: booked.Reference, Status: "sent"})
	if err != nil {
		return rail.Receipt{}, err
	}
	return rail.Receipt{Reference: booked.Reference, Response: response, Time: booked.Time}, nil
}

func responseOf(a answer) (events.Response, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return events.Response{}, fmt.Errorf("simulated: the response cannot be written: %w", err)
	}
	return events.Response{MediaType: "application/json", Body: body}, nil
}

func randomReference() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: the program ends instead
	return "sim-" + hex.EncodeToString(b[:])
}
