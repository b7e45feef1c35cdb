package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
	rail                  *option
	yes, confirm          *option
}

func newWord() word {
	return word{
		key:      needed("key", "KEY", "the request key"),
		reason:   needed("reason", "TEXT", "why, for the record"),
		evidence: needed("evidence", "TEXT", "what you looked at, for the record"),
		rail:     railOption(),
		yes:      toggle("yes", "do not ask for a confirmation"),
		confirm:  text("confirm", "TOKEN", "the confirmation: the last 6 characters of the withdrawal's id"),
	}
}

// said is what the person is about to put on record.
type said struct {
	verb      string // "resolve", "release"
	result    events.Result
	reference string
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
	c.showFacts(s, about, known)
	token := string(s.ID[len(s.ID)-tokenLength:])
	switch {
	case w.confirm.given && w.confirm.value != token:
		return c.usage("--confirm %s does not confirm withdrawal %s, whose id ends in %s; nothing was written", events.Quote(w.confirm.value), s.ID, token)
	case w.confirm.given, w.yes.on():
		return nil
	case !c.terminal(c.stdin):
		err := c.usage("this changes the record for good and wants a confirmation; nothing was written")
		return &tryError{err, c.again("--confirm", token)}
	}
	fmt.Fprintf(c.stderr, "To %s, type %s: ", about, token)
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

// contradicts says in a clause how what the person is about to say differs from what the
// rail says, or returns "".
func (a *railAnswer) contradicts(about said) string {
	switch {
	case a == nil || a.Verdict != string(rail.VerdictSent):
		return ""
	case about.result != events.ResultSent:
		return "the rail says that the money left, and you are about to say that it did not"
	case about.reference != a.Reference:
		return "the rail knows this payment under another reference than you give"
	}
	return ""
}

// factsDocument is what a person is shown before they confirm, on standard error.
type factsDocument struct {
	Facts   statusDocument `json:"facts"`
	Rail    *railAnswer    `json:"rail,omitempty"`
	Warning string         `json:"warning,omitempty"`
	About   string         `json:"about"`
}

func (c *call) showFacts(s submissions.Status, about said, known *railAnswer) {
	d := c.status(s)
	warning := known.contradicts(about)
	if c.inJSON() {
		c.stderr.Write(encode(factsDocument{Facts: d, Rail: known, Warning: warning, About: about.String()}))
		return
	}
	p := c.page()
	p.paint = c.paint(c.stderr)
	d.page(p, s)
	if known != nil {
		p.fact("Rail says", known.String())
	}
	if warning != "" {
		p.line("%s %s.", p.paint.bad("Warning:"), warning)
	}
	p.line("")
	fmt.Fprint(c.stderr, p)
}
