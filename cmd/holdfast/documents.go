package main

import (
	"unicode/utf8"

	"holdfast/events"
	"holdfast/submissions"
)

// requestDocument is the result of request. It holds nothing that changes, so that a
// repeated request prints the same.
type requestDocument struct {
	Withdrawal  string `json:"withdrawal"`
	Tenant      string `json:"tenant"`
	Account     string `json:"account"`
	Reference   string `json:"reference"`
	Amount      string `json:"amount"`
	Currency    string `json:"currency"`
	Destination string `json:"destination"`
	RequestedAt string `json:"requested_at"`
}

func newRequestDocument(s submissions.Status) requestDocument {
	return requestDocument{
		Withdrawal: string(s.ID), Tenant: string(s.Tenant), Account: s.Account, Reference: s.Reference,
		Amount: s.Amount.String(), Currency: s.Currency, Destination: s.Destination, RequestedAt: stamp(s.RequestedAt),
	}
}

func (d requestDocument) page(p *page) {
	p.fact("Withdrawal", d.Withdrawal)
	if d.Tenant != string(events.DefaultTenant) {
		p.fact("Tenant", d.Tenant)
	}
	p.fact("Account", d.Account)
	p.fact("Reference", d.Reference)
	p.fact("Amount", d.Amount+" "+d.Currency)
	p.fact("Destination", d.Destination)
	p.fact("Requested at", d.RequestedAt)
}

// outcomeDocument is the result of submit and of resolve, and the outcome within a
// statusDocument. It holds nothing that changes: a replay prints the same bytes (A2).
type outcomeDocument struct {
	Withdrawal string           `json:"withdrawal"`
	Key        string           `json:"key"`
	Result     string           `json:"result"`
	Reference  string           `json:"reference,omitempty"`
	ResolvedAt string           `json:"resolved_at"`
	Actor      string           `json:"actor"`
	Source     string           `json:"source"`
	Attempt    int              `json:"attempt,omitempty"`
	Reason     string           `json:"reason,omitempty"`
	Evidence   string           `json:"evidence,omitempty"`
	Fee        string           `json:"fee,omitempty"`
	RailTime   string           `json:"rail_time,omitempty"`
	Response   responseDocument `json:"response"`
}

func newOutcomeDocument(o submissions.Outcome) outcomeDocument {
	return outcomeDocument{
		Withdrawal: string(o.Withdrawal), Key: string(o.Key), Result: string(o.Result), Reference: o.Reference,
		ResolvedAt: stamp(o.ResolvedAt), Actor: o.Actor, Source: string(o.Source), Attempt: o.Attempt,
		Reason: o.Reason, Evidence: o.Evidence, Fee: o.Fee.String(), RailTime: stamp(o.RailTime.Time()), Response: newResponseDocument(o.Response),
	}
}

func (d outcomeDocument) page(p *page) {
	p.fact("Result", d.Result)
	p.fact("Rail reference", d.Reference)
	p.fact("Withdrawal", d.Withdrawal)
	p.fact("Key", d.Key)
	p.fact("Resolved at", d.ResolvedAt)
	by := d.Actor
	if d.Source == string(events.SourcePerson) {
		by += ", who looked"
	} else {
		by += ", as the rail answered"
	}
	p.fact("Resolved by", by)
	p.fact("Reason", d.Reason)
	p.fact("Evidence", d.Evidence)
	p.fact("Rail's fee", d.Fee)
	p.fact("Rail's time", d.RailTime)
	p.fact("Response", d.Response.String())
}

// responseDocument is a response: as text where it is text, in base64 otherwise.
type responseDocument struct {
	MediaType string  `json:"media_type"`
	Text      *string `json:"text,omitempty"`
	Base64    []byte  `json:"base64,omitempty"`
}

func newResponseDocument(r events.Response) responseDocument {
	if !utf8.Valid(r.Body) {
		return responseDocument{MediaType: r.MediaType, Base64: r.Body}
	}
	text := string(r.Body)
	return responseDocument{MediaType: r.MediaType, Text: &text}
}

// String returns the response on one line: quoted where it would not be one otherwise.
func (d responseDocument) String() string {
	if d.Text == nil {
		return legible(string(d.Base64)) + " (" + d.MediaType + ")"
	}
	return legible(*d.Text) + " (" + d.MediaType + ")"
}

// statusDocument is the result of outcome and of claimed-by, and each item of in-flight.
type statusDocument struct {
	requestDocument
	State    string           `json:"state"`
	Since    string           `json:"since"`
	Disputed bool             `json:"disputed"`
	Holder   string           `json:"holder,omitempty"`
	Claim    *claimDocument   `json:"claim,omitempty"`
	Outcome  *outcomeDocument `json:"outcome,omitempty"`
	Dispute  *disputeDocument `json:"dispute,omitempty"`
	// PastClaims are the claims that were released, oldest first.
	PastClaims []pastClaimDocument `json:"past_claims"`
	// LateAnswers are what the rail said when the record had moved on, and
	// ClosedDisputes the disputes that a person has closed; each oldest first.
	LateAnswers    []lateAnswerDocument    `json:"late_answers"`
	ClosedDisputes []closedDisputeDocument `json:"closed_disputes"`
	// Actions says what can be done: wait, submit, resolve, release.
	Actions []string `json:"actions"`
	// ReleaseFrom is when release stops being refused, where that is later than now.
	ReleaseFrom string `json:"release_from,omitempty"`

	advice advice
}

type claimDocument struct {
	Key     string           `json:"key"`
	Since   string           `json:"since"`
	Attempt *attemptDocument `json:"attempt,omitempty"`
}

type attemptDocument struct {
	Number    int    `json:"number"`
	Rail      string `json:"rail"`
	Token     string `json:"token"`
	StartedAt string `json:"started_at"`
	Deadline  string `json:"deadline"`
	// Reported is refused or unknown once the attempt is over without an outcome.
	Reported string `json:"reported,omitempty"`
	Detail   string `json:"detail,omitempty"`
	EndedAt  string `json:"ended_at,omitempty"`
}

// railSaid is what the rail answered when the record had moved on.
type railSaid struct {
	Key       string `json:"key"`
	Attempt   int    `json:"attempt"`
	Result    string `json:"result"`
	Reference string `json:"reference,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Fee       string `json:"fee,omitempty"`
	RailTime  string `json:"rail_time,omitempty"`
}

func newRailSaid(e events.LateOutcomeReported) railSaid {
	return railSaid{Key: string(e.Key), Attempt: e.Attempt, Result: string(e.Result), Reference: e.Reference, Detail: e.Detail,
		Fee: e.Fee.String(), RailTime: stamp(e.RailTime.Time())}
}

// String returns the answer in words.
func (s railSaid) String() string {
	switch {
	case s.Reference != "":
		return s.Result + " as " + legible(s.Reference)
	case s.Detail != "":
		return s.Result + " (" + legible(s.Detail) + ")"
	}
	return s.Result
}

type disputeDocument struct {
	Since string `json:"since"`
	railSaid
}

type closedDisputeDocument struct {
	disputeDocument
	ClosedAt string `json:"closed_at"`
	ClosedBy string `json:"closed_by"`
	Reason   string `json:"reason"`
	Evidence string `json:"evidence"`
}

type lateAnswerDocument struct {
	At string `json:"at"`
	railSaid
	// Contradicts says that it opened a dispute.
	Contradicts bool `json:"contradicts"`
}

type pastClaimDocument struct {
	Key        string `json:"key"`
	Since      string `json:"since"`
	Attempt    int    `json:"attempt,omitempty"`
	ReleasedAt string `json:"released_at"`
	ReleasedBy string `json:"released_by"`
	Reason     string `json:"reason"`
	Evidence   string `json:"evidence"`
}
