package main

import (
	"slices"
	"strings"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
	"holdfast/internal/shell"
	"holdfast/submissions"
)

// advice is what can be done about a withdrawal: in words, and as command lines in which
// only words in capitals are left to fill in. The ledger decides.
type advice struct {
	actions     []string
	releaseFrom time.Time
	// look is the token to look for at the rail first; "" where there is nothing to see.
	look     string
	commands []string
}

// actions returns what can be done about a withdrawal, in words.
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

// advise says what can be done about a withdrawal.
func (c *call) advise(s submissions.Status) advice {
	a := advice{actions: actions(s), releaseFrom: s.ReleaseFrom}
	switch {
	case s.Dispute != nil:
		a.look = string(s.ID) // every attempt of a withdrawal has the same token
		a.commands = []string{c.closing(s)}
		return a
	case s.State == aggregate.StateSending, s.State == aggregate.StateUnknown, s.State == aggregate.StateRefused:
		a.look = s.Claim.Attempt.Token
	}
	key := "KEY"
	if holder := s.Holder(); holder != "" {
		key = string(holder)
	}
	word := []string{"--key", key, "--reason", "REASON", "--evidence", "EVIDENCE"}
	for _, action := range a.actions {
		switch action {
		case "submit":
			a.commands = append(a.commands, shell.Join(c.command("submit", "--key", key, "--withdrawal", string(s.ID))...))
		case "release":
			a.commands = append(a.commands, shell.Join(c.command("release", word...)...))
		case "resolve":
			for _, result := range [][]string{{"--sent", "REFERENCE"}, {"--failed"}} {
				if s.State == aggregate.StateClaimed && len(result) > 1 {
					continue // nothing was sent
				}
				a.commands = append(a.commands, shell.Join(c.command("resolve", slices.Concat(word[:2], result, word[2:])...)...))
			}
		}
	}
	return a
}

// closing returns the command line that closes a dispute: it says what the record says
// once more, or, where there is no outcome yet, what the rail said.
func (c *call) closing(s submissions.Status) string {
	key, result := "KEY", []string{"--sent", s.Dispute.Reference}
	if holder := s.Holder(); holder != "" {
		key = string(holder)
	}
	switch {
	case s.Outcome != nil && s.Outcome.Result == events.ResultSent:
		result = []string{"--sent", s.Outcome.Reference}
	case s.Outcome != nil && s.Dispute.Result == events.ResultSent:
		result = []string{"--failed", "--against-the-rail"}
	case s.Outcome != nil:
		result = []string{"--failed"}
	}
	flags := slices.Concat([]string{"--key", key, "--withdrawal", string(s.ID)}, result, []string{"--reason", "REASON", "--evidence", "EVIDENCE"})
	return shell.Join(c.command("resolve", flags...)...)
}

// summary is what can be done, on part of a line.
func (a advice) summary(now time.Time) string {
	can := strings.Join(a.actions, ", ")
	if a.releaseFrom.IsZero() || !slices.Contains(a.actions, "release") {
		return can
	}
	return can + " in " + remaining(a.releaseFrom.Sub(now))
}

// page writes the command lines out.
func (a advice) page(p *page) {
	if len(a.commands) == 0 {
		return
	}
	p.line("")
	if a.look != "" {
		p.line("First look at the rail for token %s. Then:", a.look)
	}
	for _, command := range a.commands {
		p.line("  %s", command)
	}
}
