package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
	"holdfast/internal/shell"
	"holdfast/submissions"
)

// problem is an error as it is printed: the refusal that it is, and what to try.
type problem struct {
	*aggregate.Refusal
	try []string
	// log and tenant are where something was not found.
	log, tenant string
}

// fail prints an error on standard error and returns the exit status of its code.
func (c *call) fail(err error) int {
	p := c.problem(err)
	if c.inJSON() {
		c.stderr.Write(encode(p.document()))
	} else {
		p.print(c)
	}
	return p.Code.Info().ExitCode
}

// problem finds the code of an error, and what can be tried about it. An error that
// nobody foresaw is unavailable: nothing is known, and the same key is safe to retry.
func (c *call) problem(err error) problem {
	var withTry *tryError
	if errors.As(err, &withTry) {
		p := c.problem(withTry.error)
		p.try = withTry.try
		return p
	}
	if u := asUsage(err); u != nil {
		return problem{Refusal: aggregate.Invalid(u.err), try: u.try}
	}
	var unopened *logError
	if errors.As(err, &unopened) {
		return problem{Refusal: openRefusal(unopened.err), try: unopened.try}
	}
	var refusal *submissions.Refusal
	if errors.As(err, &refusal) {
		p := problem{Refusal: refusal, try: c.try(refusal)}
		if refusal.Code == aggregate.CodeNotFound {
			p.log, p.tenant = place(c.log.value), c.tenant.value
		}
		return p
	}
	var unprinted *printError
	if errors.As(err, &unprinted) {
		done := &aggregate.Refusal{Code: aggregate.CodeUnavailable, Message: "the result could not be printed; what was done stands", Cause: unprinted.error}
		return problem{Refusal: done, try: c.shown()}
	}
	message := "this could not be done, and it is safe to try again"
	if errors.Is(err, context.Canceled) {
		message = "interrupted; it is safe to try again"
	}
	return problem{Refusal: &aggregate.Refusal{Code: aggregate.CodeUnavailable, Message: message, Cause: err}, try: c.again()}
}

// shown is the command line that shows what this call did, where doing it again would
// not.
func (c *call) shown() []string {
	if c.name == "release" {
		return c.command("in-flight")
	}
	return c.again()
}

// openRefusal is the refusal of a log that cannot be opened: what --log names is no log
// for this program, or it is one that cannot be reached now.
func openRefusal(err error) *aggregate.Refusal {
	var open *eventlog.OpenError
	if !errors.As(err, &open) {
		return &aggregate.Refusal{Code: aggregate.CodeUnavailable, Message: "the log cannot be opened", Cause: err}
	}
	why := open.Reason
	if open.Try != "" {
		why += "; " + open.Try
	}
	if errors.Is(err, eventlog.ErrUnavailable) {
		return &aggregate.Refusal{Code: aggregate.CodeUnavailable, Message: fmt.Sprintf("the log %s cannot be reached: %s", events.Quote(open.Path), why), Cause: open.Err}
	}
	code := aggregate.CodeInvalidRequest
	if errors.Is(err, eventlog.ErrForbidden) {
		code = aggregate.CodeForbidden
	}
	return &aggregate.Refusal{Code: code, Message: fmt.Sprintf("the log %s cannot be used: %s", events.Quote(open.Path), why)}
}

// try returns the command line that gets somebody further who met a refusal.
func (c *call) try(r *aggregate.Refusal) []string {
	byKey := c.command("outcome", "--key", string(r.Key))
	byWithdrawal := c.command("claimed-by", "--withdrawal", string(r.Withdrawal))
	switch r.Code {
	case aggregate.CodeNotFound:
		switch {
		case r.Withdrawal != "" && r.Key != "": // the key held it once
			return byWithdrawal
		case r.Withdrawal != "":
			return c.command("request", "--help")
		}
		return c.command("in-flight")
	case aggregate.CodeWithdrawalClaimed:
		return c.command("outcome", "--key", string(r.Holder))
	case aggregate.CodeKeyReused, aggregate.CodeDetailsDiffer, aggregate.CodeReferenceReused:
		return byWithdrawal
	case aggregate.CodeInFlight, aggregate.CodeAlreadyResolved, aggregate.CodeAttemptRunning, aggregate.CodeOutcomeUnknown:
		return byKey
	case aggregate.CodeDisputed:
		return byWithdrawal
	case aggregate.CodeDamaged:
		return c.command("verify")
	case aggregate.CodeUnavailable:
		return c.again()
	}
	return c.ownHelp()
}

// tryError is an error with a command line of its own to try.
type tryError struct {
	error
	try []string
}

func (e *tryError) Unwrap() error { return e.error }

// print writes the error for a person: one line, then the facts, then what to try.
func (p problem) print(c *call) {
	page := &page{now: c.now()}
	message := oneLine(p.Message)
	if p.Cause != nil {
		message += ": " + oneLine(p.Cause.Error())
	}
	page.line("%s %s (%s)", c.paint(c.stderr).bad("Error:"), message, p.Code)
	for _, fact := range [][2]string{
		{"Holder", string(p.Holder)},
		{"Withdrawal", string(p.Withdrawal)},
		{"Key", string(p.Key)},
		{"Fields", strings.Join(p.Fields, ", ")},
		{"State", string(p.State)},
		{"Since", page.since(p.Since)},
		{"Tenant", p.tenant},
		{"Log", p.log},
	} {
		if fact[1] != "" {
			page.line("%s: %s", fact[0], fact[1])
		}
	}
	if !p.Until.IsZero() {
		page.line("Until: %s", page.until(p.Until))
	}
	page.line("Try: %s", shell.Join(p.try...))
	fmt.Fprint(c.stderr, page)
}

// oneLine puts what several errors say on one line.
func oneLine(s string) string { return strings.Join(strings.Split(strings.TrimSpace(s), "\n"), "; ") }

// errorDocument is an error in JSON: the only object on standard error that has "error".
type errorDocument struct {
	Error errorFacts `json:"error"`
}

type errorFacts struct {
	Code       string   `json:"code"`
	Message    string   `json:"message"`
	Cause      string   `json:"cause,omitempty"`
	Holder     string   `json:"holder,omitempty"`
	Withdrawal string   `json:"withdrawal,omitempty"`
	Key        string   `json:"key,omitempty"`
	Fields     []string `json:"fields,omitempty"`
	State      string   `json:"state,omitempty"`
	Since      string   `json:"since,omitempty"`
	Until      string   `json:"until,omitempty"`
	Tenant     string   `json:"tenant,omitempty"`
	Log        string   `json:"log,omitempty"`
	Try        string   `json:"try"`
}

func (p problem) document() errorDocument {
	facts := errorFacts{
		Code: string(p.Code), Message: oneLine(p.Message),
		Holder: string(p.Holder), Withdrawal: string(p.Withdrawal), Key: string(p.Key), Fields: p.Fields,
		State: string(p.State), Since: stamp(p.Since), Until: stamp(p.Until), Tenant: p.tenant, Log: p.log, Try: shell.Join(p.try...),
	}
	if p.Cause != nil {
		facts.Cause = oneLine(p.Cause.Error())
	}
	return errorDocument{facts}
}
