package model_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/events"
	"holdfast/internal/model"
	"holdfast/rail"
	"holdfast/submissions"
)

// epoch is what the model's times are counted from.
func epoch() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

func since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(epoch())
}

// ledger is what the histories are made on: a real one, or one that is broken on purpose.
type ledger interface {
	Request(context.Context, submissions.Request) (submissions.Status, error)
	Submit(context.Context, events.RequestKey, events.WithdrawalID, rail.Sender, *submissions.SubmitOptions) (submissions.Outcome, error)
	Resolve(context.Context, events.RequestKey, submissions.Resolution) (submissions.Outcome, error)
	Release(context.Context, events.RequestKey, submissions.Release) (submissions.Status, error)
	Outcome(context.Context, events.RequestKey) (submissions.Status, error)
	ClaimedBy(context.Context, events.WithdrawalID) (submissions.Status, error)
	InFlight(context.Context) ([]submissions.Status, error)
}

// without is the part of a call that is left out, where the call is malformed so.
type without string

const (
	nothing    without = ""
	anActor    without = "an actor"
	aReason    without = "a reason"
	anEvidence without = "evidence"
	aRail      without = "a rail"
)

// perform makes the call of a ledger that a command stands for, and returns what it is
// answered. The answer is open when the ledger says that it does not know what it did.
func perform(ctx context.Context, l ledger, c model.Command, missing without, send rail.Sender) (a model.Answer, open bool) {
	id, key := events.WithdrawalID(c.Withdrawal), events.RequestKey(c.Key)
	by, reason, evidence := submissions.By{Actor: "ann"}, "looked", "statement 7"
	switch missing {
	case anActor:
		by.Actor = ""
	case aReason:
		reason = ""
	case anEvidence:
		evidence = ""
	case aRail:
		send = nil
	}
	restated := submissions.Restated(c.Details)
	switch c.Verb {
	case model.Request:
		return ofStatus(l.Request(ctx, submissions.Request{
			By: by, Account: account, Reference: c.Reference,
			Amount: c.Details.Amount, Currency: c.Details.Currency, Destination: c.Details.Destination,
		}))
	case model.Submit:
		return ofOutcome(l.Submit(ctx, key, id, send, &submissions.SubmitOptions{By: by, Restated: restated, Timeout: c.Deadline - c.Now}))
	case model.Resolve:
		return ofOutcome(l.Resolve(ctx, key, submissions.Resolution{
			By: by, Withdrawal: id, Restated: restated, Result: events.Result(c.Result), Reference: c.Reference,
			Reason: reason, Evidence: evidence, Seen: uint64(c.Seen),
		}))
	case model.Release:
		return ofStatus(l.Release(ctx, key, submissions.Release{By: by, Reason: reason, Evidence: evidence, Seen: uint64(c.Seen)}))
	case model.Outcome:
		return ofStatus(l.Outcome(ctx, key))
	case model.ClaimedBy:
		return ofStatus(l.ClaimedBy(ctx, id))
	case model.InFlight:
		list, err := l.InFlight(ctx)
		if err != nil {
			return ofError(err)
		}
		for _, s := range list {
			a.List += fmt.Sprintln(s.ID, s.State, since(s.Since), s.Holder(), s.Dispute != nil)
		}
		return a, false
	}
	panic("no call is a " + string(c.Verb))
}

// account is what every withdrawal is taken from.
const account = "alice"

// mint returns the id of the withdrawal that has a reference.
func mint(tenant, reference string) string {
	return string(events.MintWithdrawalID(events.Tenant(tenant), account, reference))
}

func ofStatus(s submissions.Status, err error) (model.Answer, bool) {
	if err != nil {
		return ofError(err)
	}
	a := model.Answer{
		Withdrawal: string(s.ID), State: string(s.State), Since: since(s.Since), Holder: string(s.Holder()),
		Until: since(s.ReleaseFrom), Disputed: s.Dispute != nil, Events: int(s.Events),
	}
	for _, p := range s.PastClaims {
		a.Past += string(p.Key) + " "
	}
	for _, late := range s.LateAnswers {
		a.Late += fmt.Sprintln(late.Attempt, late.Result, since(late.At))
	}
	for _, d := range s.ClosedDisputes {
		a.Closed += fmt.Sprintln(since(d.Since), since(d.ClosedAt))
	}
	if s.Outcome != nil {
		o, _ := ofOutcome(submissions.Outcome{Outcome: *s.Outcome}, nil)
		a.Said = o.Said
	}
	return a, false
}

func ofOutcome(o submissions.Outcome, err error) (model.Answer, bool) {
	if err != nil {
		return ofError(err)
	}
	return model.Answer{Replayed: o.Replayed, Disputed: o.Disputed, Said: model.Said{
		Key: string(o.Key), Result: string(o.Result), Reference: o.Reference, MediaType: o.Response.MediaType,
		Body: string(o.Response.Body), By: string(o.Source), At: since(o.ResolvedAt),
	}}, false
}

func ofError(err error) (model.Answer, bool) {
	var r *submissions.Refusal
	if !errors.As(err, &r) {
		return model.Answer{Code: "no refusal at all: " + err.Error()}, false
	}
	cause, _ := submissions.CodeOf(r.Cause)
	open := r.Code == "unavailable" || r.Code == "outcome-unknown" && cause == "unavailable"
	return model.Answer{
		Code: string(r.Code), Withdrawal: string(r.Withdrawal), Holder: string(r.Holder), State: string(r.State),
		Fields: strings.Join(r.Fields, ","), Since: since(r.Since), Until: since(r.Until),
	}, open
}

// answering returns what a rail answers, in one of the ways that there are, and the
// result that it comes to.
func answering(how, reference, mediaType, body string) (result string, answer func(context.Context) (rail.Receipt, error)) {
	response := events.Response{MediaType: mediaType}
	if body != "" {
		response.Body = []byte(body)
	}
	receipt := rail.Receipt{Reference: reference, Response: response}
	refusal := &rail.Refusal{Reason: "no such account", Response: response}
	say := func(r rail.Receipt, err error) func(context.Context) (rail.Receipt, error) {
		return func(context.Context) (rail.Receipt, error) { return r, err }
	}
	switch how {
	case "receipt":
		return "sent", say(receipt, nil)
	case "refusal":
		return "refused", say(rail.Receipt{}, refusal)
	case "wrapped refusal":
		return "refused", say(rail.Receipt{}, fmt.Errorf("bank: %w", refusal))
	case "joined refusal":
		return "unknown", say(rail.Receipt{}, errors.Join(refusal, errors.New("connection reset")))
	case "refusal and receipt":
		return "unknown", say(receipt, refusal)
	case "receipt without reference":
		return "unknown", say(rail.Receipt{Reference: " ", Response: response}, nil)
	case "panic":
		return "unknown", func(context.Context) (rail.Receipt, error) { panic("a rail that panics") }
	case "cancelled":
		return "unknown", func(ctx context.Context) (rail.Receipt, error) { return rail.Receipt{}, context.Cause(ctx) }
	}
	return "unknown", say(rail.Receipt{}, errors.New("connection reset"))
}

// ways are the ways in which a rail answers.
func ways() []string {
	return []string{"receipt", "receipt", "receipt", "refusal", "refusal", "error", "error", "wrapped refusal",
		"joined refusal", "refusal and receipt", "receipt without reference", "panic", "cancelled"}
}
