package submissions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
	"holdfast/rail"
)

// Outcome is what happened to a withdrawal, as everybody is told.
type Outcome struct {
	aggregate.Outcome
	// Replayed says that the outcome was there before this call.
	Replayed bool
	// Disputed says that the rail has contradicted the record of this withdrawal at some
	// time, whether or not a person has closed the dispute: see Ledger.ClaimedBy before
	// acting on it. Only in this and in Replayed does a replay differ from the first
	// answer.
	Disputed bool
}

func outcomeOf(w aggregate.Withdrawal, replayed bool) Outcome {
	outcome, _ := w.Outcome()
	outcome.Response.Body = slices.Clone(outcome.Response.Body) // the caller's own
	_, disputed := w.Dispute()
	return Outcome{Outcome: outcome, Replayed: replayed, Disputed: disputed || len(w.ClosedDisputes()) > 0}
}

// SubmitOptions are what may be said beside the key and the withdrawal. A nil
// *SubmitOptions is fine.
type SubmitOptions struct {
	By
	// Restated is what the caller believes it is paying; a difference is refused as
	// details-differ before anything is written.
	Restated Restated
	// Rail is the rail's name, as recorded with the attempt; "caller" by default.
	Rail string
	// Timeout is how long this rail call may take, where the ledger's SendTimeout does
	// not fit: more than zero, and MaxSendTimeout at most.
	Timeout time.Duration
}

// Submit pays a withdrawal at most once, and returns its outcome.
//
// The first submit of an unclaimed withdrawal takes the claim, durably, then calls send
// once, then records the answer. Submitting again under the same key replays the
// outcome; send is not called. Every error is a [*Refusal], by whose code the caller
// acts:
//
//   - invalid-request, not-found, details-differ, reference-reused: nothing was written.
//   - key-reused: the key stands for another submission.
//   - withdrawal-claimed: another key holds the withdrawal; Holder names it.
//   - in-flight: the key's send is under way, was refused by the rail, or ended without
//     anybody knowing how; State says which. A clean refusal of this very send has the
//     rail's [rail.Refusal] as its cause.
//   - disputed: a person has to resolve the withdrawal first.
//   - outcome-unknown: send was called and did not answer; the claim stands.
//   - unavailable: it is not known whether anything was written; send was not called.
//     The same key is safe to retry.
//   - damaged: a stream is not sound, and nothing is done about it.
//
// When ctx ends while send is under way, Submit returns outcome-unknown, a moment later
// at most; the answer is recorded all the same when it comes.
func (l *Ledger) Submit(ctx context.Context, key events.RequestKey, id events.WithdrawalID, send rail.Sender, o *SubmitOptions) (Outcome, error) {
	if o == nil {
		o = &SubmitOptions{}
	}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = l.SendTimeout
	}
	cmd := aggregate.SubmitCommand{Withdrawal: id, Restated: o.Restated, Rail: o.Rail}
	if cmd.Rail == "" {
		cmd.Rail = "caller"
	}
	switch err := cmd.Validate(l.tenant, key); {
	case err != nil:
		return Outcome{}, err
	case send == nil:
		return Outcome{}, aggregate.Invalid(fmt.Errorf("there is no rail to send withdrawal %s by", id))
	case timeout < 0 || timeout > MaxSendTimeout:
		return Outcome{}, aggregate.Invalid(fmt.Errorf("timeout %s must be more than zero and at most %s", timeout, MaxSendTimeout))
	}
	if err := o.metadata(l.Clock()).Validate(); err != nil {
		return Outcome{}, aggregate.Invalid(err)
	}
	if err := l.begin(); err != nil {
		return Outcome{}, err
	}
	defer l.running.Done()

	if o, found := l.replay(ctx, key, cmd); found {
		return o, nil
	}
	subject, plan, err := l.decide(ctx, key, id, o.By, func(c aggregate.Claimant) (aggregate.Plan, error) {
		cmd.Deadline = c.Now.Add(timeout)
		return aggregate.Submit(cmd, c)
	})
	if err != nil {
		return Outcome{}, err
	}
	if plan.Empty() {
		return outcomeOf(subject.withdrawal.state, true), nil
	}
	return l.newAttempt(key, subject.withdrawal.state, timeout, o.By, send).run(ctx, subject.withdrawal)
}
