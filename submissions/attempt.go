package submissions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/rail"
)

// attempt is the one call of a rail under a claim that is already in the log. What it
// holds does not change; the state of the log is handed on beside it.
type attempt struct {
	*core
	by      By
	send    rail.Sender
	key     events.RequestKey
	payment rail.Payment
	left    time.Duration
}

func (c *core) newAttempt(key events.RequestKey, w aggregate.Withdrawal, timeout time.Duration, by By, send rail.Sender) *attempt {
	claim, _ := w.Claim()
	requested, _, _ := w.Requested()
	// A clock that was set back in between must not make the call longer than it says.
	left := min(timeout, claim.Attempt.Deadline.Sub(c.Clock()))
	return &attempt{
		core: c, by: by, send: send, key: key, left: left,
		payment: rail.Payment{
			Withdrawal: requested.Withdrawal, Account: requested.Account, Amount: requested.Amount,
			Currency: requested.Currency, Destination: requested.Destination,
			Token: claim.Attempt.Token, Attempt: claim.Attempt.Number,
		},
	}
}

// ended is what an attempt came to, for the caller who waits for it.
type ended struct {
	outcome Outcome
	err     error
}

// errAttemptOver is the cause with which the rail call's context ends at the deadline.
var errAttemptOver = errors.New("the attempt's deadline is over")

// run calls the rail and records its answer, and returns what came of it. It returns
// before the rail does when the context, or the attempt's time, is over; the rest then
// happens without the caller.
func (a *attempt) run(ctx context.Context, w folded[aggregate.Withdrawal]) (Outcome, error) {
	sending, cancel := context.WithTimeoutCause(ctx, a.left, errAttemptOver)
	done := make(chan ended, 1)
	a.running.Add(1)
	go func() {
		defer a.running.Done()
		defer cancel()
		var answer aggregate.Answer
		var cause error
		defer func() {
			if answer.Result == "" { // the rail has ended this goroutine (runtime.Goexit)
				answer, cause = unanswered("the rail ended its goroutine without an answer", nil)
			}
			a.record(context.WithoutCancel(ctx), w, answer, cause, done)
		}()
		answer, cause = a.call(sending)
	}()

	select {
	case e := <-done:
		return e.outcome, e.err
	case <-sending.Done():
	}
	// The send ought to end now, and its answer is worth a moment.
	moment := time.NewTimer(grace)
	defer moment.Stop()
	select {
	case e := <-done:
		return e.outcome, e.err
	case <-moment.C:
		return Outcome{}, a.unknown(fmt.Errorf("the rail has not answered: %w", context.Cause(sending)))
	}
}

// call calls the rail once and reads its answer. What is not clearly sent and not
// clearly refused is unknown (A7): an error, a panic, a receipt without a reference. The
// rail is somebody else's code, and so are its errors: whatever they do, they end here.
func (a *attempt) call(ctx context.Context) (answer aggregate.Answer, cause error) {
	if ctx.Err() != nil { // past the deadline the claim may be somebody else's already
		return unanswered("the rail was not called: "+context.Cause(ctx).Error(), context.Cause(ctx))
	}
	if err := a.act(ctx); err != nil { // a process that was held up while it claimed: the ledger may have moved
		return unanswered("the rail was not called: "+err.Error(), err)
	}
	defer func() {
		if r := recover(); r != nil {
			answer, cause = unanswered(fmt.Sprintf("the rail panicked: %v", r), nil)
		}
	}()
	return understand(a.send(ctx, a.payment))
}

// understand tells the three kinds of answer apart.
func understand(receipt rail.Receipt, err error) (aggregate.Answer, error) {
	refusal, refused := rail.AsRefusal(err)
	switch {
	case refused && receipt.Reference == "":
		return aggregate.Answer{Result: events.ResultRefused, Response: bounded(refusal.Response),
			Detail: aggregate.Legible(refusal.Reason, rail.MaxReason)}, err
	case err != nil:
		return unanswered(err.Error(), err)
	case aggregate.Reference(receipt.Reference) == "":
		return unanswered("the rail's answer has no reference", nil)
	}
	return aggregate.Answer{Result: events.ResultSent, Response: bounded(receipt.Response),
		Reference: aggregate.Reference(receipt.Reference), Fee: receipt.Fee, RailTime: railTime(receipt.Time)}, nil
}

// railTime is a rail's time as it can be recorded. One that cannot be written must not cost
// the outcome.
func railTime(t time.Time) events.Timestamp {
	if year := t.UTC().Year(); t.IsZero() || year < 1 || year > 9999 {
		return events.Timestamp{}
	}
	return events.At(t)
}

func unanswered(why string, cause error) (aggregate.Answer, error) {
	if cause == nil {
		cause = errors.New(why)
	}
	return aggregate.Answer{Result: events.ResultUnknown, Detail: aggregate.Legible(why, rail.MaxReason)}, cause
}

// record writes the rail's answer down: at the revision that follows the claim, or, when
// the stream has moved on, as whatever it then is (B7). The answer of a rail is never
// given up while the log may still take it: the caller is told that it could not be
// recorded yet, and it is tried again until the log is closed.
func (a *attempt) record(ctx context.Context, w folded[aggregate.Withdrawal], answer aggregate.Answer, cause error, done chan<- ended) {
	tell := func(o Outcome, err error) {
		select {
		case done <- ended{o, err}:
		default: // the caller has been told already
		}
	}
	event, s, err := a.stageAnswer(w, answer)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, maxPause) {
		if err == nil {
			err = a.commit(ctx, s)
		}
		if err == nil {
			_, late := event.(events.LateOutcomeReported)
			tell(a.told(s.withdrawal.state, answer, cause, late))
			return
		}
		if errors.Is(err, errConflict) {
			if errors.Is(err, errUnseen) {
				time.Sleep(pause)
			}
			if w, err = a.streams.withdrawal(ctx, a.payment.Withdrawal); err == nil {
				event, s, err = a.stageAnswer(w, answer)
				continue
			}
		}
		a.Logger.Error("a rail's answer could not be recorded", "withdrawal", a.payment.Withdrawal, "key", a.key,
			"result", answer.Result, "reference", answer.Reference, "detail", answer.Detail, "error", err)
		tell(Outcome{}, a.unknown(fmt.Errorf("the rail's answer (%s) could not be recorded: %w", said(answer), untaken(err))))
		if code, _ := CodeOf(err); code != CodeUnavailable || errors.Is(err, eventlog.ErrClosed) || errors.Is(err, eventlog.ErrReadOnly) {
			return
		}
		time.Sleep(pause)
		// It may be in the log: with other bytes it would be there a second time.
		err = nil
	}
}

// stageAnswer decides what an answer is to the withdrawal as it stands.
func (a *attempt) stageAnswer(w folded[aggregate.Withdrawal], answer aggregate.Answer) (events.Event, staged, error) {
	event := aggregate.Report(w.state, a.key, a.payment.Attempt, answer)
	s, err := a.stage(folded[aggregate.RequestKey]{}, w, aggregate.Plan{Withdrawal: []events.Event{event}}, a.by)
	return event, s, err
}

// maxPause is the longest pause between two tries to record a rail's answer.
const maxPause = 5 * time.Second

// untaken is why the log did not take an answer. What a refusal says of retries is for
// callers whose send was not called.
func untaken(err error) error {
	if r := (*Refusal)(nil); errors.As(err, &r) && r.Code == CodeUnavailable {
		return &Refusal{Code: CodeUnavailable, Message: "the log did not take it yet", Cause: r.Cause}
	}
	return err
}

// told says what the caller is told once the answer is in the log.
func (a *attempt) told(w aggregate.Withdrawal, answer aggregate.Answer, cause error, late bool) (Outcome, error) {
	outcome, resolved := w.Outcome()
	dispute, disputed := w.Dispute()
	resolved = resolved && outcome.Key == a.key
	switch {
	case late && disputed:
		return Outcome{}, &Refusal{
			Code: aggregate.CodeDisputed, Withdrawal: a.payment.Withdrawal, Key: a.key, Since: dispute.Since, Cause: cause,
			Message: fmt.Sprintf("the rail's answer to this send (%s) came when the record said otherwise; it is kept as evidence, and nothing more is sent until a person resolves it", said(answer)),
		}
	case resolved:
		return outcomeOf(w, late), nil
	case late:
		return Outcome{}, a.unknown(errors.Join(
			fmt.Errorf("the claim was released while the rail was at it, and its answer (%s) is recorded as evidence", said(answer)), cause))
	case answer.Result == events.ResultRefused:
		state, since := w.State(a.Clock())
		return Outcome{}, &Refusal{
			Code: aggregate.CodeInFlight, Withdrawal: a.payment.Withdrawal, Key: a.key, State: state, Since: since, Cause: cause,
			Message: "the rail refused and nothing left; the key keeps its claim until somebody resolves or releases it",
		}
	}
	return Outcome{}, a.unknown(cause)
}

// said is a rail's answer in words.
func said(a aggregate.Answer) string {
	switch {
	case a.Reference != "":
		return fmt.Sprintf("%s as %s", a.Result, events.Quote(a.Reference))
	case a.Detail != "":
		return fmt.Sprintf("%s: %s", a.Result, a.Detail)
	}
	return string(a.Result)
}

// unknown is the answer to the caller whose send it was: nobody knows (A7).
func (a *attempt) unknown(cause error) *Refusal {
	return &Refusal{
		Code: aggregate.CodeOutcomeUnknown, Withdrawal: a.payment.Withdrawal, Key: a.key,
		State: aggregate.StateUnknown, Since: a.Clock(), Cause: cause,
		Message: "the send did not end with an answer, and the money may have left; the claim stands",
	}
}

// bounded returns a rail's response as it can be kept: verbatim, or a note of what was
// left out because it was too long.
func bounded(r events.Response) events.Response {
	if r.MediaType != "" {
		r.MediaType = aggregate.Legible(r.MediaType, rail.MaxReference)
	}
	if len(r.Body) <= rail.MaxResponse {
		r.Body = slices.Clone(r.Body) // the rail may use its buffer again
		return r
	}
	sum := sha256.Sum256(r.Body)
	note, err := json.Marshal(map[string]any{
		"omitted_bytes": len(r.Body), "omitted_media_type": r.MediaType, "omitted_sha256": hex.EncodeToString(sum[:]),
	})
	if err != nil {
		panic("submissions: two strings and a number could not be marshalled: " + err.Error())
	}
	return events.Response{MediaType: "application/json", Body: note}
}
