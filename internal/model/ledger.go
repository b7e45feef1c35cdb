package model

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Verb says which command a Command is.
type Verb string

// The commands. Report is the rail's answer to the attempt that a Submit started.
const (
	Request   Verb = "request"
	Submit    Verb = "submit"
	Report    Verb = "report"
	Resolve   Verb = "resolve"
	Release   Verb = "release"
	Outcome   Verb = "outcome"
	ClaimedBy Verb = "claimed-by"
	InFlight  Verb = "in-flight"
)

// Command is one command with everything that its answer depends on, the time by the
// clock of whoever runs it included. Times are counted from an epoch.
type Command struct {
	Verb                    Verb
	Tenant, Key, Withdrawal string
	// Malformed says that something about the command is, in whichever way (A12, A13).
	Malformed bool
	// Details is what is requested, or what a caller restates of it (A15).
	Details       Details
	Now, Deadline time.Duration
	// Result, Reference, MediaType and Body are a person's word, or a rail's answer to
	// the numbered Attempt.
	Attempt           int
	Result, Reference string
	MediaType, Body   string
	Seen              int // the number of events that a person saw; 0 if they do not say
}

// Details is what is paid, beside the withdrawal's id. What is empty is not compared.
type Details struct{ Amount, Currency, Destination string }

// Answer is what a command is answered: a Code when it is refused, and the facts.
type Answer struct {
	Code, Withdrawal, Holder, State, Fields string
	Since, Until                            time.Duration
	// Attempt is the attempt as which the rail is to be called now.
	Attempt  int
	Said     Said
	Replayed bool
	Disputed bool
	// Past is the keys whose claims were released, Late what the rail said late, Closed
	// since when there were disputes that were closed, and List what is in flight; each
	// in order.
	Past, Late, Closed, List string
	Events                   int
}

// Said is an outcome: what is replayed, byte for byte.
type Said struct {
	Key, Result, Reference, MediaType, Body, By string
	At                                          time.Duration
}

// key is a request key within its tenant (A14).
type key struct{ tenant, name string }

// claim is what a key holds.
type claim struct {
	withdrawal             string
	since, deadline, ended time.Duration
	attempt                int    // 0 when a person's word took the claim
	reported               string // refused or unknown once the attempt is over without an outcome
	said                   Said   // zero while there is no outcome
}

// withdrawal is what was requested, and who holds it.
type withdrawal struct {
	tenant, holder       string
	past, late, closed   string
	details              Details
	attempts, events     int
	freed, disputedSince time.Duration // freed: since when nobody holds it
	disputed             bool
}

// Ledger is the reference: what each key holds, and what was requested.
type Ledger struct {
	margin      time.Duration
	claims      map[key]claim
	released    map[key]string // the withdrawal of the last claim that a key gave up
	withdrawals map[string]withdrawal
}

// New returns an empty ledger, which takes an attempt that has not reported for running
// until its deadline is margin ago.
func New(margin time.Duration) *Ledger {
	return &Ledger{margin, map[key]claim{}, map[key]string{}, map[string]withdrawal{}}
}

// Clone returns a copy, which shares nothing with the ledger.
func (l *Ledger) Clone() *Ledger {
	return &Ledger{l.margin, maps.Clone(l.claims), maps.Clone(l.released), maps.Clone(l.withdrawals)}
}

// Equal reports whether two ledgers are in the same state.
func (l *Ledger) Equal(o *Ledger) bool {
	return maps.Equal(l.claims, o.claims) && maps.Equal(l.released, o.released) && maps.Equal(l.withdrawals, o.withdrawals)
}

// Do carries out a command.
func (l *Ledger) Do(c Command) Answer {
	unseen := c.Seen == 0 && (c.Verb == Release || c.Verb == Resolve && c.Result == "failed") // B4
	if c.Malformed || unseen {
		return Answer{Code: "invalid-request"} // A12: nothing is burnt
	}
	k := key{c.Tenant, c.Key}
	held, holds := l.claims[k]
	switch c.Verb {
	case InFlight:
		return Answer{List: l.list(c)}
	case Report:
		return l.report(c, k)
	case Outcome, Release:
		if !holds {
			return Answer{Code: "not-found", Withdrawal: l.released[k]}
		}
		if c.Verb == Release {
			return l.release(c, k, held)
		}
		return l.status(c, held.withdrawal)
	}
	if c.Verb == Resolve && c.Withdrawal == "" {
		if !holds {
			return Answer{Code: "not-found", Withdrawal: l.released[k]}
		}
		c.Withdrawal = held.withdrawal
	}
	w, known := l.withdrawals[c.Withdrawal]
	switch {
	case c.Verb == Request && known: // A11
		if fields := w.details.differences(c.Details); fields != "" {
			return Answer{Code: "reference-reused", Withdrawal: c.Withdrawal, Fields: fields}
		}
		return l.status(c, c.Withdrawal)
	case c.Verb == Request:
		l.withdrawals[c.Withdrawal] = withdrawal{tenant: c.Tenant, details: c.Details, freed: c.Now, events: 1}
		return l.status(c, c.Withdrawal)
	case !known || w.tenant != c.Tenant: // A11, A14
		return Answer{Code: "not-found", Withdrawal: c.Withdrawal}
	case c.Verb == ClaimedBy:
		return l.status(c, c.Withdrawal)
	}
	if fields := w.details.differences(c.Details); fields != "" { // A15
		return Answer{Code: "details-differ", Withdrawal: c.Withdrawal, Fields: fields}
	}
	holds = holds && held.withdrawal == c.Withdrawal
	if !holds {
		if refusal, refused := l.claimable(c, k, w); refused {
			return refusal
		}
		held = claim{withdrawal: c.Withdrawal, since: c.Now}
	}
	if c.Verb == Submit {
		return l.submit(c, k, held, w, holds)
	}
	return l.resolve(c, k, held, w, holds)
}

// claimable refuses the claim of a key that does not hold the withdrawal.
func (l *Ledger) claimable(c Command, k key, w withdrawal) (Answer, bool) {
	switch other, elsewhere := l.claims[k]; {
	case w.holder != "": // A5, B2
		return Answer{Code: "withdrawal-claimed", Withdrawal: c.Withdrawal, Holder: w.holder, Since: l.claims[key{w.tenant, w.holder}].since}, true
	case w.disputed && c.Verb == Submit: // B7
		return Answer{Code: "disputed", Withdrawal: c.Withdrawal, Since: w.disputedSince}, true
	case elsewhere:
		return l.Reused(c, other.withdrawal), true
	}
	return Answer{}, false
}

// Reused is the refusal of a key that stands for another withdrawal (A3).
func (l *Ledger) Reused(c Command, other string) Answer {
	fields := strings.TrimSuffix("withdrawal,"+l.withdrawals[other].details.differences(l.withdrawals[c.Withdrawal].details), ",")
	return Answer{Code: "key-reused", Withdrawal: other, Fields: fields}
}

func (l *Ledger) submit(c Command, k key, held claim, w withdrawal, holds bool) Answer {
	switch {
	case held.said.Result != "": // A2
		return w.told(held.said, true)
	case holds: // A4
		a := Answer{Code: "in-flight", Withdrawal: c.Withdrawal}
		if a.State, a.Since = held.state(c.Now); a.State == "sending" {
			a.Until = held.deadline
		}
		return a
	}
	w.attempts++ // A1
	held.attempt, held.deadline = w.attempts, c.Deadline
	w.holder, w.events = k.name, w.events+2
	l.claims[k], l.withdrawals[c.Withdrawal] = held, w
	return Answer{Attempt: w.attempts}
}

// report takes the rail's answer: it closes the attempt if that is still awaited, and is
// evidence otherwise, which disputes what it contradicts (A7, A8, B7).
func (l *Ledger) report(c Command, k key) Answer {
	w := l.withdrawals[c.Withdrawal]
	w.events++
	defer func() { l.withdrawals[c.Withdrawal] = w }()
	live := l.claims[key{w.tenant, w.holder}] // zero when nobody holds it
	own := live.attempt == c.Attempt
	late := !own || live.reported != "" || live.said.Result != ""
	if !late {
		if live.reported, live.ended = c.Result, c.Now; c.Result == "sent" {
			live.reported, live.said = "", c.said("rail")
		}
		l.claims[k] = live
	} else if w.late += fmt.Sprintln(c.Attempt, c.Result, c.Now); !w.disputed {
		left := c.Result == "sent" && (live.said.Result == "failed" || live.said.Result == "sent" && live.said.Reference != c.Reference ||
			live.said.Result == "" && (!own || live.reported == "refused"))
		stayed := c.Result == "refused" && own && live.said.Result == "sent"
		if left || stayed {
			w.disputed, w.disputedSince = true, c.Now
		}
	}
	switch {
	case late && w.disputed:
		return Answer{Code: "disputed", Withdrawal: c.Withdrawal, Since: w.disputedSince}
	case live.said.Result != "" && live.said.Key == c.Key:
		return w.told(live.said, late)
	case !late && c.Result == "refused":
		return Answer{Code: "in-flight", Withdrawal: c.Withdrawal, State: "refused", Since: c.Now}
	}
	return Answer{Code: "outcome-unknown", Withdrawal: c.Withdrawal, State: "unknown", Since: c.Now}
}

func (l *Ledger) resolve(c Command, k key, held claim, w withdrawal, holds bool) Answer {
	switch closed := held.said.Result != ""; {
	case closed && (held.said.Result != c.Result || held.said.Reference != c.Reference): // B3
		return Answer{Code: "already-resolved", Withdrawal: c.Withdrawal, State: held.said.Result, Since: held.said.At}
	case closed && !w.disputed:
		return w.told(held.said, true)
	case c.Seen != 0 && c.Seen != w.events:
		return l.unseen(c, c.Withdrawal)
	case !closed: // B1
		held.said = c.said("person")
	}
	if w.events++; !holds { // B2
		w.events, w.holder = w.events+1, k.name
	}
	if w.disputed { // B7: a person has looked
		w.closed += fmt.Sprintln(w.disputedSince, c.Now)
		w.disputed, w.disputedSince = false, 0
	}
	l.claims[k], l.withdrawals[c.Withdrawal] = held, w
	return w.told(held.said, false)
}

func (l *Ledger) release(c Command, k key, held claim) Answer {
	w := l.withdrawals[held.withdrawal]
	switch until := held.deadline + l.margin; {
	case held.said.Result != "": // B4
		return Answer{Code: "already-resolved", Withdrawal: held.withdrawal, State: held.said.Result, Since: held.said.At}
	case c.Seen != w.events:
		return l.unseen(c, held.withdrawal)
	case held.reported == "" && c.Now < until: // B4
		a := Answer{Code: "attempt-running", Withdrawal: held.withdrawal, Until: until}
		a.State, a.Since = held.state(c.Now)
		return a
	}
	delete(l.claims, k)
	l.released[k] = held.withdrawal
	w.holder, w.past, w.freed, w.events = "", w.past+k.name+" ", c.Now, w.events+1
	l.withdrawals[held.withdrawal] = w
	return l.status(c, held.withdrawal)
}

// unseen refuses a person's word about what has moved on since they looked.
func (l *Ledger) unseen(c Command, id string) Answer {
	s := l.status(c, id)
	return Answer{Code: "attempt-running", Withdrawal: id, State: s.State, Since: s.Since}
}

// status is the truth about a withdrawal.
func (l *Ledger) status(c Command, id string) Answer {
	w := l.withdrawals[id]
	a := Answer{Withdrawal: id, State: "requested", Since: w.freed, Holder: w.holder, Past: w.past, Late: w.late, Closed: w.closed, Disputed: w.disputed, Events: w.events}
	if held, ok := l.claims[key{w.tenant, w.holder}]; ok {
		a.State, a.Since = held.state(c.Now)
		a.Said = held.said
		if until := held.deadline + l.margin; held.said.Result == "" && held.reported == "" && c.Now < until {
			a.Until = until
		}
	}
	return a
}

// told is an outcome as everybody is told it, and whether there was a dispute about it.
func (w withdrawal) told(s Said, replayed bool) Answer {
	return Answer{Said: s, Replayed: replayed, Disputed: w.disputed || w.closed != ""}
}

// state says how far a claim has got, and since when (A4).
func (h claim) state(now time.Duration) (string, time.Duration) {
	switch {
	case h.said.Result != "":
		return h.said.Result, h.said.At
	case h.reported != "":
		return h.reported, h.ended
	case now < h.deadline:
		return "sending", h.since
	}
	return "unknown", h.deadline
}

// list is the tenant's withdrawals that wait for somebody: the disputed ones first, then
// the oldest claims.
func (l *Ledger) list(c Command) string {
	type waiting struct {
		calm  int
		since time.Duration
		id    string
	}
	var all []waiting
	for id, w := range l.withdrawals {
		held, ok := l.claims[key{w.tenant, w.holder}]
		switch {
		case w.tenant == c.Tenant && w.disputed:
			all = append(all, waiting{0, w.disputedSince, id})
		case w.tenant == c.Tenant && ok && held.said.Result == "":
			all = append(all, waiting{1, held.since, id})
		}
	}
	slices.SortFunc(all, func(a, b waiting) int {
		return cmp.Or(a.calm-b.calm, cmp.Compare(a.since, b.since), cmp.Compare(a.id, b.id))
	})
	var list strings.Builder
	for _, at := range all {
		s := l.status(c, at.id)
		fmt.Fprintln(&list, at.id, s.State, s.Since, s.Holder, s.Disputed)
	}
	return list.String()
}

// said is the outcome that a command brings, with an answer composed where a rail gave
// none, so that there is always something to replay.
func (c Command) said(by string) Said {
	s := Said{c.Key, c.Result, c.Reference, c.MediaType, c.Body, by, c.Now}
	switch {
	case s.MediaType == "" && s.Body != "":
		s.MediaType = "application/octet-stream"
	case s.MediaType == "":
		reference := ""
		if c.Reference != "" {
			reference = fmt.Sprintf(`,"reference":%q`, c.Reference)
		}
		s.MediaType = "application/json"
		s.Body = fmt.Sprintf(`{"withdrawal":%q,"key":%q,"result":%q%s}`, c.Withdrawal, c.Key, c.Result, reference)
	}
	return s
}

// differences names the fields of d that o states otherwise. Amounts are compared as
// numbers (A13).
func (d Details) differences(o Details) string {
	var fields []string
	number := func(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
	if o.Amount != "" && number(d.Amount).Cmp(number(o.Amount)) != 0 {
		fields = append(fields, "amount")
	}
	if o.Currency != "" && d.Currency != o.Currency {
		fields = append(fields, "currency")
	}
	if o.Destination != "" && d.Destination != o.Destination {
		fields = append(fields, "destination")
	}
	return strings.Join(fields, ",")
}
