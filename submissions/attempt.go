package submissions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
	"holdfast/rail"
)

// attempt is the one call of a rail under a claim that is already in the log.
type attempt struct {
	*core
	subject
	by   By
	send rail.Sender
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
func (a *attempt) run(ctx context.Context) (Outcome, error) {
	claim, _ := a.Withdrawal.Claim()
	left := claim.Attempt.Deadline.Sub(a.Clock())
	sending, cancel := context.WithTimeoutCause(ctx, left, errAttemptOver)
	done := make(chan ended, 1)
	a.running.Add(1)
	go func() {
		defer a.running.Done()
		defer cancel()
		// Recorded even when the rail ends this goroutine (runtime.Goexit).
		answer, cause := unanswered("the rail ended its goroutine without an answer", nil)
		defer func() {
			outcome, err := a.record(context.WithoutCancel(ctx), answer, cause)
			done <- ended{outcome, err}
		}()
		answer, cause = a.call(sending, left)
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
func (a *attempt) call(ctx context.Context, left time.Duration) (answer aggregate.Answer, cause error) {
	if left <= 0 { // the claim took so long to record that it may be released already
		return unanswered("the rail was not called: the attempt's deadline was over before it began", nil)
	}
	defer func() {
		if r := recover(); r != nil {
			answer, cause = unanswered(fmt.Sprintf("the rail panicked: %v", r), nil)
		}
	}()
	claim, _ := a.Withdrawal.Claim()
	requested, _, _ := a.Withdrawal.Requested()
	receipt, err := a.send(ctx, rail.Payment{
		Withdrawal: requested.Withdrawal, Account: requested.Account, Amount: requested.Amount,
		Currency: requested.Currency, Destination: requested.Destination,
		Token: claim.Attempt.Token, Attempt: claim.Attempt.Number,
	})
	return understand(receipt, err)
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
	case strings.TrimSpace(receipt.Reference) == "":
		return unanswered("the rail's answer has no reference", nil)
	}
	return aggregate.Answer{Result: events.ResultSent, Response: bounded(receipt.Response),
		Reference: aggregate.Legible(receipt.Reference, rail.MaxReference)}, nil
}

func unanswered(why string, cause error) (aggregate.Answer, error) {
	if cause == nil {
		cause = errors.New(why)
	}
	return aggregate.Answer{Result: events.ResultUnknown, Detail: aggregate.Legible(why, rail.MaxReason)}, cause
}

// record writes the rail's answer down: at the revision that follows the claim, or, when
// the stream has moved on, as whatever it then is (B7). The answer of a rail is never
// given up while the log may still take it.
func (a *attempt) record(ctx context.Context, answer aggregate.Answer, cause error) (Outcome, error) {
	claim, _ := a.Withdrawal.Claim()
	number := claim.Attempt.Number
	for range maxRounds {
		event := aggregate.Report(a.Withdrawal, a.Key, number, answer)
		err := a.append(ctx, &a.subject, aggregate.Plan{Withdrawal: []events.Event{event}}, a.by)
		if errors.Is(err, errConflict) {
			a.withdrawal, err = a.streams.withdrawal(ctx, a.withdrawalID())
			a.Withdrawal = a.withdrawal.state
			if err == nil {
				continue
			}
		}
		if err != nil {
			lost := a.unknown(fmt.Errorf("the rail's answer (%s %s%s) could not be recorded: %w",
				answer.Result, answer.Reference, answer.Detail, err))
			a.Logger.Error("a rail's answer could not be recorded", "withdrawal", lost.Withdrawal, "key", lost.Key,
				"result", answer.Result, "reference", answer.Reference, "detail", answer.Detail, "error", err)
			return Outcome{}, lost
		}
		_, late := event.(events.LateOutcomeReported)
		return a.told(answer, cause, late)
	}
	return Outcome{}, a.unknown(errConflict)
}

// told says what the caller is told once the answer is in the log.
func (a *attempt) told(answer aggregate.Answer, cause error, late bool) (Outcome, error) {
	outcome, resolved := a.Withdrawal.Outcome()
	dispute, disputed := a.Withdrawal.Dispute()
	switch {
	case disputed:
		return Outcome{}, &Refusal{Code: aggregate.CodeDisputed, Withdrawal: a.withdrawalID(), Key: a.Key, Since: dispute.Since, Cause: cause,
			Message: "the rail's late answer contradicts the record; nothing is sent until a person resolves it"}
	case resolved && outcome.Key == a.Key:
		return Outcome{Outcome: outcome, Replayed: late}, nil
	case late:
		return Outcome{}, a.unknown(fmt.Errorf("the claim was released while the rail was at it, and its answer is recorded as evidence: %s: %w",
			answer.Detail, cause))
	case answer.Result == events.ResultRefused:
		state, since := a.Withdrawal.State(a.Clock())
		return Outcome{}, &Refusal{Code: aggregate.CodeInFlight, Withdrawal: a.withdrawalID(), Key: a.Key, State: state, Since: since, Cause: cause,
			Message: "the rail refused and nothing left; the key keeps its claim until somebody resolves or releases it"}
	}
	return Outcome{}, a.unknown(cause)
}

// unknown is the answer to the caller whose send it was: nobody knows (A7).
func (a *attempt) unknown(cause error) *Refusal {
	claim, _ := a.Withdrawal.Claim()
	return &Refusal{
		Code: aggregate.CodeOutcomeUnknown, Withdrawal: a.withdrawalID(), Key: a.Key,
		State: aggregate.StateUnknown, Since: claim.Since, Cause: cause,
		Message: "the send did not end with an answer, and the money may have left; the claim stands",
	}
}

func (a *attempt) withdrawalID() events.WithdrawalID { return a.Withdrawal.Identity().Withdrawal }

// bounded returns a rail's response as it can be kept: verbatim, or a note of what was
// left out because it was too long.
func bounded(r events.Response) events.Response {
	if r.MediaType != "" {
		r.MediaType = aggregate.Legible(r.MediaType, rail.MaxReference)
	}
	if len(r.Body) <= rail.MaxResponse {
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
