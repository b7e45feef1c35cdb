package audit

import (
	"context"
	"fmt"
	"reflect"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// Divergence is a decision of the log that today's code would make in another way.
type Divergence struct {
	Stream   string `json:"stream"`
	Revision uint64 `json:"revision"`
	// Recorded is what was decided, Today what would be decided now, each in words.
	Recorded string `json:"recorded"`
	Today    string `json:"today"`
}

// Replayed is what a replay of decisions came to.
type Replayed struct {
	// Events counts what was looked at, Decisions what was decided anew.
	Events, Decisions uint64
	Divergences       []Divergence
	// Unreadable counts streams that are not sound, which Verify tells about.
	Unreadable uint64
}

// Replay makes every decision in a log anew, from the state that there was before it and
// with the command that its events imply, and compares what today's code decides (SPEC D2).
// Progress, where it is not nil, is told how many events were looked at. The error is not
// nil only when the log cannot be read.
//
// Not all that was decided can be derived. Refusals left no trace. What a caller restated,
// by how much clocks were taken to disagree at a release, and what a person had seen, are
// not on record: they are taken for whatever lets the command through.
func Replay(ctx context.Context, log eventlog.Log, progress func(events uint64)) (Replayed, error) {
	r := &replay{log: log, codec: events.NewCodec(), done: Replayed{Divergences: []Divergence{}}}
	for e, err := range log.ReadAll(ctx, eventlog.Start) {
		if err != nil {
			return r.done, err
		}
		r.done.Events++
		if _, ours := events.WithdrawalOfStream(e.Stream); ours && e.Revision == 0 {
			if err := r.withdrawal(ctx, e.Stream); err != nil {
				return r.done, err
			}
		}
		if progress != nil {
			progress(r.done.Events)
		}
	}
	return r.done, nil
}

type replay struct {
	log   eventlog.Log
	codec *events.Codec
	done  Replayed
}

// withdrawal decides everything in a withdrawal's stream anew.
func (r *replay) withdrawal(ctx context.Context, stream string) error {
	v := &verifier{log: r.log, codec: r.codec, found: map[Finding]bool{}}
	var history []events.Recorded
	_, sound, err := fold(ctx, v, stream, aggregate.Withdrawal{}, func(e events.Recorded) error {
		history = append(history, e)
		return nil
	})
	if err != nil {
		return err
	}
	if !sound {
		r.done.Unreadable++
	}
	var w aggregate.Withdrawal
	for len(history) > 0 {
		n := 1
		if _, claims := history[0].Event.(events.KeyClaimed); claims && len(history) > 1 {
			n = 2 // a claim, and what it was taken for
		}
		if err := r.decision(ctx, v, w, history[:n]); err != nil {
			return err
		}
		for _, e := range history[:n] {
			if w, err = w.Apply(e); err != nil {
				return fmt.Errorf("%s was folded, and then not: %w", stream, err)
			}
		}
		history = history[n:]
	}
	return nil
}

// decision makes one decision anew and compares.
func (r *replay) decision(ctx context.Context, v *verifier, w aggregate.Withdrawal, recorded []events.Recorded) error {
	first := recorded[0]
	claimant, err := r.claimant(ctx, v, w, first)
	if err != nil {
		return err
	}
	r.done.Decisions++
	plan, err := decide(claimant, recorded)
	today := "nothing"
	switch {
	case err != nil:
		today = "refused: " + err.Error()
	case len(plan) > 0:
		today = words(plan)
	}
	var was []events.Event
	for _, e := range recorded {
		was = append(was, e.Event)
	}
	if err != nil || !reflect.DeepEqual(plan, was) {
		r.done.Divergences = append(r.done.Divergences, Divergence{Stream: first.Stream, Revision: first.Revision, Recorded: words(was), Today: today})
	}
	return nil
}

// claimant is who decided, with what was known then: the key as it was once it had reserved
// the claim.
func (r *replay) claimant(ctx context.Context, v *verifier, w aggregate.Withdrawal, e events.Recorded) (aggregate.Claimant, error) {
	requested, _, _ := w.Requested()
	c := aggregate.Claimant{Tenant: requested.Tenant, Now: e.Metadata.RecordedAt.Time(), Withdrawal: w, Reserved: w}
	at := e.Revision
	if claim, held := w.Claim(); held {
		c.Key, at = claim.Key, claim.Revision
	}
	switch e := e.Event.(type) {
	case events.KeyClaimed:
		c.Key = e.Key
	case events.OutcomeResolved:
		c.Key = e.Key
	case events.LateOutcomeReported:
		c.Key = e.Key
		return c, nil // it decides nothing about keys
	}
	if c.Key == "" {
		return c, nil
	}
	state := aggregate.RequestKey{}
	_, _, err := fold(ctx, v, c.Key.Stream(c.Tenant), aggregate.RequestKey{}, func(e events.Recorded) error {
		var err error
		if state, err = state.Apply(e); err != nil {
			return nil // fold finds the same
		}
		if reserved, ok := e.Event.(events.KeyReserved); ok && reserved.Withdrawal == requested.Withdrawal && reserved.At == at {
			c.KeyState = state
		}
		return nil
	})
	return c, err
}

// decide is what today's code decides.
func decide(c aggregate.Claimant, recorded []events.Recorded) ([]events.Event, error) {
	last := recorded[len(recorded)-1].Event
	report := func(attempt int, a aggregate.Answer) ([]events.Event, error) {
		return []events.Event{aggregate.Report(c.Withdrawal, c.Key, attempt, a)}, nil
	}
	var plan aggregate.Plan
	var err error
	switch e := last.(type) {
	case events.WithdrawalRequested:
		again, invalid := aggregate.RequestCommand{
			Tenant: e.Tenant, Account: e.Account, Reference: e.Reference, Amount: e.Amount.String(), Currency: e.Currency, Destination: e.Destination,
		}.Event()
		if invalid != nil {
			return nil, invalid
		}
		plan, err = aggregate.Request(again, c.Withdrawal)
	case events.SendAttempted:
		requested, _, _ := c.Withdrawal.Requested()
		plan, err = aggregate.Submit(aggregate.SubmitCommand{Withdrawal: requested.Withdrawal, Rail: e.Rail, Deadline: e.Deadline.Time()}, c)
	case events.SendRefused:
		return report(e.Attempt, aggregate.Answer{Result: events.ResultRefused, Detail: e.Reason, Response: given(e.Response)})
	case events.SendUnconfirmed:
		return report(e.Attempt, aggregate.Answer{Result: events.ResultUnknown, Detail: e.Cause})
	case events.LateOutcomeReported:
		return report(e.Attempt, aggregate.Answer{Result: e.Result, Reference: e.Reference, Detail: e.Detail, Response: given(e.Response),
			Fee: e.Fee, RailTime: e.RailTime})
	case events.OutcomeResolved:
		if e.Source == events.SourceRail {
			return report(e.Attempt, aggregate.Answer{Result: e.Result, Reference: e.Reference, Response: e.Response, Fee: e.Fee, RailTime: e.RailTime})
		}
		requested, _, _ := c.Withdrawal.Requested()
		plan, err = aggregate.Resolve(aggregate.ResolveCommand{
			Withdrawal: requested.Withdrawal, Result: e.Result, Reference: e.Reference, Reason: e.Reason, Evidence: e.Evidence, Seen: c.Withdrawal.Next(),
		}, c)
	case events.Released:
		plan, err = aggregate.Release(aggregate.ReleaseCommand{Reason: e.Reason, Evidence: e.Evidence, Seen: c.Withdrawal.Next()}, c)
	case events.KeyClaimed: // the process ended there, or was to go on
		requested, _, _ := c.Withdrawal.Requested()
		plan, err = aggregate.Submit(aggregate.SubmitCommand{Withdrawal: requested.Withdrawal, Rail: "unknown", Deadline: c.Now}, c)
		if len(plan.Withdrawal) > 1 {
			plan.Withdrawal = plan.Withdrawal[:1] // the send was never recorded
		}
	}
	return plan.Withdrawal, err
}

func given(r *events.Response) events.Response {
	if r == nil {
		return events.Response{}
	}
	return *r
}

// words names events and what they decide.
func words(list []events.Event) string {
	text := ""
	for i, e := range list {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %+v", e.Type(), e)
	}
	return text
}
