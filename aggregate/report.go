package aggregate

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/events"
)

// Answer is what came of one call of a rail.
type Answer struct {
	// Result is events.ResultSent, events.ResultRefused or events.ResultUnknown.
	Result events.Result
	// Reference is the rail's reference when the result is sent; never empty then.
	Reference string
	// Response is the rail's response, verbatim; it may be empty.
	Response events.Response
	// Fee and RailTime are the rail's fee and own time when the result is sent, where it
	// said them.
	Fee      events.Amount
	RailTime events.Timestamp
	// Detail says why, when the result is not sent.
	Detail string
}

// Report decides how an attempt's answer is recorded: as the outcome, the refusal or
// the end of the attempt while that attempt is awaited, and otherwise as a late answer,
// which is evidence and decides nothing (B7). It never fails: a rail's answer is not
// lost.
func Report(w Withdrawal, key events.RequestKey, attempt int, a Answer) events.Event {
	response := &a.Response
	if a.Response.IsZero() {
		response = nil
	}
	if !w.awaits(attempt) || w.claim.Key != key {
		return events.LateOutcomeReported{
			Key: key, Attempt: attempt, Result: a.Result, Reference: a.Reference, Detail: a.Detail, Response: response,
			Fee: a.Fee, RailTime: a.RailTime,
		}
	}
	switch a.Result {
	case events.ResultSent:
		return events.OutcomeResolved{
			Key: key, Result: events.ResultSent, Reference: a.Reference,
			Response: orComposed(a.Response, w, key, events.ResultSent, a.Reference),
			Source:   events.SourceRail, Attempt: attempt, Fee: a.Fee, RailTime: a.RailTime,
		}
	case events.ResultRefused:
		return events.SendRefused{Attempt: attempt, Reason: a.Detail, Response: response}
	}
	return events.SendUnconfirmed{Attempt: attempt, Cause: a.Detail}
}

// orComposed returns the rail's response, or one that we compose where there is none,
// so that every outcome has bytes to replay.
func orComposed(r events.Response, w Withdrawal, key events.RequestKey, result events.Result, reference string) events.Response {
	if r.MediaType != "" {
		return r
	}
	if len(r.Body) > 0 {
		return events.Response{MediaType: "application/octet-stream", Body: r.Body}
	}
	body, err := json.Marshal(struct {
		Withdrawal events.WithdrawalID `json:"withdrawal"`
		Key        events.RequestKey   `json:"key"`
		Result     events.Result       `json:"result"`
		Reference  string              `json:"reference,omitempty"`
	}{w.requested.Withdrawal, key, result, reference})
	if err != nil {
		panic("aggregate: four strings could not be marshalled: " + err.Error())
	}
	return events.Response{MediaType: "application/json", Body: body}
}

// Reference returns a rail's reference as it is recorded: at most events.MaxReference
// bytes of printable text without blanks at its ends, so that a person can say it. It is
// empty when nothing of it can be.
func Reference(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.TrimSpace(s))
	if len(s) > events.MaxReference {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:events.MaxReference], ""))
	}
	return s
}

// Legible returns s as an event may hold it: valid UTF-8, at most max bytes, and never
// empty. What a rail says is kept as far as it can be, and is no reason to refuse its
// answer.
func Legible(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.TrimSpace(s) == "" {
		return "(nothing said)"
	}
	if len(s) > max {
		s = strings.ToValidUTF8(s[:max], "")
	}
	return s
}
