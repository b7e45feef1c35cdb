package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"holdfast/events"
	"holdfast/rail"
	"holdfast/submissions"
)

// tokenLength is how many characters of the withdrawal's id a person repeats.
const tokenLength = 6

// word is a person's word that changes what the record says: the flags that resolve and
// release have in common, and how the person confirms.
type word struct {
	key, reason, evidence *option
	rail, against         *option
	yes, confirm          *option
}

func newWord() word {
	return word{
		key:      needed("key", "KEY", "the request key"),
		reason:   needed("reason", "TEXT", "why, for the record"),
		evidence: needed("evidence", "TEXT", "what you looked at, for the record"),
		rail:     railOption(),
		against:  toggle("against-the-rail", "say that nothing was sent although the rail says that it was"),
		yes:      toggle("yes", "do not ask for a confirmation"),
		confirm:  text("confirm", "TOKEN", "the confirmation: the last 6 characters of the withdrawal's id"),
	}
}

// options returns the flags, with those of one command after what is to be said.
func (w word) options(own ...*option) []*option {
	return slices.Concat([]*option{w.key}, own, []*option{w.reason, w.evidence, w.rail, w.against, w.yes, w.confirm})
}

// said is what the person is about to put on record.
type said struct {
	verb      string // "resolve", "release"
	result    events.Result
	reference string
}

// nothingSent reports whether it says that the money did not leave. If it did, that is
// how it leaves twice, or is lost.
func (s said) nothingSent() bool { return s.result != events.ResultSent }

// sentence says on a line of its own what the word means.
func (s said) sentence() string {
	switch s.result {
	case events.ResultSent:
		return fmt.Sprintf("Resolving as sent says that the money left, under the rail's reference %s.", legible(s.reference))
	case events.ResultFailed:
		return "Resolving as failed says that nothing left, and gives the withdrawal up."
	}
	return "Releasing says that nothing was sent."
}

func (s said) String() string {
	switch s.result {
	case events.ResultSent:
		return fmt.Sprintf("resolve it as sent, under the rail's reference %s", legible(s.reference))
	case events.ResultFailed:
		return "resolve it as failed: nothing left, and it is given up"
	}
	return "release it: nothing was sent, and any key may submit it again"
}

// confirmed shows the facts on standard error and returns nil once the person has
// confirmed, on a terminal or by a flag.
func (c *call) confirmed(ctx context.Context, w word, s submissions.Status, about said) error {
	known := c.railSays(ctx, w.rail.value, s.ID)
	warnings := warnings(s, about, known)
	c.showFacts(s, about, known, warnings)
	token := string(s.ID[len(s.ID)-tokenLength:])
	look := c.command("claimed-by", "--withdrawal", string(s.ID))
	if known.saysSent() && about.nothingSent() && !w.against.on() {
		err := c.usage("the rail says %s; nothing was written, and to say that nothing was sent wants --against-the-rail as well", known)
		if s.Outcome == nil {
			look = c.command("resolve", "--key", w.key.value, "--withdrawal", string(s.ID), "--sent", known.Reference,
				"--reason", w.reason.value, "--evidence", "EVIDENCE")
		}
		return &tryError{err, look}
	}
	switch {
	case w.confirm.given && w.confirm.value != token:
		return c.usage("--confirm %s does not confirm withdrawal %s, whose id ends in %s; nothing was written", events.Quote(w.confirm.value), s.ID, token)
	case w.confirm.given, w.yes.on():
		return nil
	case !c.terminal(c.stdin) && len(warnings) > 0:
		err := c.usage("this changes the record for good, and there is a warning; nothing was written: " +
			"look, then give --confirm with the last 6 characters of the withdrawal's id")
		return &tryError{err, look}
	case !c.terminal(c.stdin):
		err := c.usage("this changes the record for good and wants a confirmation; nothing was written")
		return &tryError{err, c.again("--confirm", token)}
	}
	fmt.Fprintf(c.stderr, "%s Type %s to %s: ", about.sentence(), token, about.verb)
	typed, err := readLine(ctx, c.stdin)
	if err != nil {
		return c.usage("there was no confirmation, and nothing was written: %w", err)
	}
	if typed != token {
		return c.usage("the confirmation was not %s; nothing was written", token)
	}
	return nil
}

// readLine reads one line, or returns when the context ends.
func readLine(ctx context.Context, r io.Reader) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(r, 4096)).ReadString('\n')
		if errors.Is(err, io.EOF) && line != "" {
			err = nil
		}
		done <- read{strings.TrimSpace(line), err}
	}()
	select {
	case got := <-done:
		return got.line, got.err
	case <-ctx.Done():
		return "", errors.New("interrupted")
	}
}

// railAnswer is what the rail said when it was asked. It is nil when there is no rail to
// ask.
type railAnswer struct {
	Rail      string `json:"rail"`
	Verdict   string `json:"verdict,omitempty"`
	Reference string `json:"reference,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Error     string `json:"error,omitempty"`
}

func (c *call) railSays(ctx context.Context, spec string, id events.WithdrawalID) *railAnswer {
	if spec == "" {
		return nil
	}
	known, err := c.ask(ctx, spec, id)
	if err != nil {
		return &railAnswer{Rail: spec, Error: oneLine(err.Error())}
	}
	return &railAnswer{
		Rail: spec, Verdict: string(known.Verdict), Reference: known.Reference, Attempt: known.Attempt, Detail: known.Detail,
	}
}

func (a *railAnswer) String() string {
	if a.Error != "" {
		return "it could not be asked: " + a.Error
	}
	answer := a.Verdict
	if a.Reference != "" {
		answer += " as " + legible(a.Reference)
	}
	if a.Detail != "" {
		answer += "; " + a.Detail
	}
	return answer
}

// saysSent reports whether the rail was asked and says that the money left.
func (a *railAnswer) saysSent() bool { return a != nil && a.Verdict == string(rail.VerdictSent) }

// warnings says, a clause each, what speaks against what the person is about to say.
func warnings(s submissions.Status, about said, known *railAnswer) []string {
	var all []string
	switch {
	case known.saysSent() && about.nothingSent():
		all = append(all, "the rail says that the money left, and you are about to say that it did not")
	case known.saysSent() && about.reference != known.Reference:
		all = append(all, "the rail knows this payment under another reference than you give")
	case about.nothingSent() && known == nil:
		all = append(all, "the rail was not asked; with --rail it is")
	case about.nothingSent() && known.Error != "":
		all = append(all, "the rail was not asked: it could not be")
	}
	if about.result == events.ResultFailed && !s.ReleaseFrom.IsZero() {
		all = append(all, fmt.Sprintf("the attempt may still be running until %s; if money leaves after all, the withdrawal will be disputed",
			stamp(s.ReleaseFrom)))
	}
	return all
}

// factsDocument is what a person is shown before they confirm, on standard error.
type factsDocument struct {
	Facts   statusDocument `json:"facts"`
	Rail    *railAnswer    `json:"rail,omitempty"`
	Warning string         `json:"warning,omitempty"`
	About   string         `json:"about"`
}

func (c *call) showFacts(s submissions.Status, about said, known *railAnswer, warnings []string) {
	d := c.status(s)
	if c.inJSON() {
		c.stderr.Write(encode(factsDocument{Facts: d, Rail: known, Warning: strings.Join(warnings, "; "), About: about.String()}))
		return
	}
	p := c.page()
	p.paint = c.paint(c.stderr)
	d.page(p, s)
	if known != nil {
		p.fact("Rail says", known.String())
	}
	for _, warning := range warnings {
		p.line("%s %s.", p.paint.bad("Warning:"), warning)
	}
	p.line("")
	fmt.Fprint(c.stderr, p)
}
