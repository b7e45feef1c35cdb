package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast/aggregate"
	"holdfast/submissions"
)

func (c *call) status(s submissions.Status) statusDocument {
	d := statusDocument{
		requestDocument: newRequestDocument(s),
		State:           string(s.State), Since: stamp(s.Since), Disputed: s.Dispute != nil, Holder: string(s.Holder()),
		PastClaims: []pastClaimDocument{},
	}
	if s.Claim != nil {
		d.Claim = newClaimDocument(*s.Claim)
	}
	if s.Outcome != nil {
		outcome := newOutcomeDocument(submissions.Outcome{Outcome: *s.Outcome})
		d.Outcome = &outcome
	}
	if x := s.Dispute; x != nil {
		d.Dispute = &disputeDocument{
			Since: stamp(x.Since), Key: string(x.Key), Attempt: x.Attempt,
			Result: string(x.Result), Reference: x.Reference, Detail: x.Detail,
		}
	}
	for _, past := range s.PastClaims {
		d.PastClaims = append(d.PastClaims, newPastClaimDocument(past))
	}
	d.Actions, d.ReleaseFrom = actions(s), stamp(s.ReleaseFrom)
	return d
}

func newClaimDocument(claim aggregate.Claim) *claimDocument {
	d := &claimDocument{Key: string(claim.Key), Since: stamp(claim.Since)}
	if a := claim.Attempt; a != nil {
		d.Attempt = &attemptDocument{
			Number: a.Number, Rail: a.Rail, Token: a.Token, StartedAt: stamp(a.Started), Deadline: stamp(a.Deadline),
			Reported: string(a.Reported), Detail: a.Detail, EndedAt: stamp(a.Ended),
		}
	}
	return d
}

func newPastClaimDocument(p aggregate.PastClaim) pastClaimDocument {
	return pastClaimDocument{
		Key: string(p.Key), Since: stamp(p.Since), Attempt: p.Attempt,
		ReleasedAt: stamp(p.ReleasedAt), ReleasedBy: p.ReleasedBy, Reason: p.Reason, Evidence: p.Evidence,
	}
}

// actions returns what can be done about a withdrawal. It is advice; the ledger decides.
func actions(s submissions.Status) []string {
	switch {
	case s.Dispute != nil:
		return []string{"resolve"}
	case s.State == aggregate.StateRequested:
		return []string{"submit"}
	case s.State == aggregate.StateClaimed:
		return []string{"submit", "release", "resolve"}
	case s.State == aggregate.StateRefused:
		return []string{"release", "resolve"}
	case s.State == aggregate.StateSending:
		return []string{"wait", "resolve", "release"}
	case s.State == aggregate.StateUnknown:
		return []string{"resolve", "release"}
	}
	return []string{}
}

// advice is what can be done, for a person.
func (d statusDocument) advice(p *page) string {
	can := strings.Join(d.Actions, ", ")
	if d.ReleaseFrom == "" || can == "" {
		return can
	}
	from, err := time.Parse(time.RFC3339Nano, d.ReleaseFrom)
	if err != nil {
		return can
	}
	return fmt.Sprintf("%s in %s", can, age(from.Sub(p.now)))
}

// statusWord is the state with the dispute that stands above it.
func (d statusDocument) statusWord() string {
	if d.Disputed {
		return "disputed"
	}
	return d.State
}

// page writes everything about a withdrawal that has no outcome to show instead.
func (d statusDocument) page(p *page, s submissions.Status) {
	p.fact("State", d.statusWord())
	p.fact("Since", p.since(s.Since))
	p.fact("Holder", d.Holder)
	d.requestDocument.page(p)
	if s.Claim != nil && s.Claim.Attempt != nil {
		a := s.Claim.Attempt
		p.fact("Attempt", fmt.Sprintf("%d, by rail %s, started %s", a.Number, a.Rail, p.since(a.Started)))
		switch {
		case a.Reported != "":
			p.fact("Attempt ended", fmt.Sprintf("%s, at %s: %s", a.Reported, p.since(a.Ended), legible(a.Detail)))
		case s.Outcome == nil:
			p.fact("Deadline", p.until(a.Deadline))
		}
	}
	d.disputePage(p)
	for _, past := range d.PastClaims {
		p.fact("Released claim", fmt.Sprintf("%s, by %s at %s: %s (%s)", past.Key, past.ReleasedBy, past.ReleasedAt, past.Reason, past.Evidence))
	}
	p.fact("Can be done", d.advice(p))
}

func (d statusDocument) disputePage(p *page) {
	if x := d.Dispute; x != nil {
		p.fact("Disputed since", x.Since)
		p.fact("Rail's late answer", strings.TrimSpace(fmt.Sprintf("attempt %d under key %s: %s %s%s", x.Attempt, x.Key, x.Result, x.Reference, x.Detail)))
	}
}

// legible returns text that is not ours as it can be printed on one line: quoted where it
// would do anything else to a terminal than show itself.
func legible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return fmt.Sprintf("%+q", s)
}
