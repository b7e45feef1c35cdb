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
	d.LateAnswers, d.ClosedDisputes = []lateAnswerDocument{}, []closedDisputeDocument{}
	disputes := map[time.Time]int{} // when they were opened, and by which attempt
	if x := s.Dispute; x != nil {
		d.Dispute = &disputeDocument{stamp(x.Since), newRailSaid(x.LateOutcomeReported)}
		disputes[x.Since] = x.Attempt
	}
	for _, x := range s.ClosedDisputes {
		d.ClosedDisputes = append(d.ClosedDisputes, closedDisputeDocument{
			disputeDocument: disputeDocument{stamp(x.Since), newRailSaid(x.LateOutcomeReported)},
			ClosedAt:        stamp(x.ClosedAt), ClosedBy: x.ClosedBy, Reason: x.Reason, Evidence: x.Evidence,
		})
		disputes[x.Since] = x.Attempt
	}
	for _, late := range s.LateAnswers {
		d.LateAnswers = append(d.LateAnswers, lateAnswerDocument{
			At: stamp(late.At), railSaid: newRailSaid(late.LateOutcomeReported), Contradicts: disputes[late.At] == late.Attempt,
		})
	}
	for _, past := range s.PastClaims {
		d.PastClaims = append(d.PastClaims, newPastClaimDocument(past))
	}
	d.Actions, d.ReleaseFrom = actions(s), stamp(s.ReleaseFrom)
	d.advice = c.advise(s)
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
		p.fact("Token at the rail", a.Token)
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
	p.fact("Can be done", d.advice.summary(p.now))
}

// disputePage writes what the rail said when the record had moved on, and what a person
// said to that.
func (d statusDocument) disputePage(p *page) {
	for _, late := range d.LateAnswers {
		when := "after the record had moved on"
		if late.Contradicts {
			when = "after the record said otherwise"
		}
		p.fact("Late answer", fmt.Sprintf("%s at %s (attempt %d, under key %s), %s", late.railSaid, late.At, late.Attempt, late.Key, when))
	}
	for _, x := range d.ClosedDisputes {
		p.fact("Dispute closed", fmt.Sprintf("by %s at %s: %s (%s)", legible(x.ClosedBy), x.ClosedAt, legible(x.Reason), legible(x.Evidence)))
	}
	if x := d.Dispute; x != nil {
		p.fact("Dispute", fmt.Sprintf("open since %s; close it with: %s", x.Since, d.advice.commands[0]))
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
