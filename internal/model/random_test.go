package model_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"holdfast/eventlog/logtest"
	"holdfast/internal/model"
)

// TestRandomHistories gives the same random commands to the model and to real ledgers on
// several kinds of log, and compares every answer, and after every command everything
// that can be looked up. The clock runs forwards and backwards, and moves nothing (B5).
func TestRandomHistories(t *testing.T) {
	dir, files := t.TempDir(), 0
	histories, commands, met := 0, 0, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		h := &history{T: t, reference: model.New(margin), now: 10_000 * time.Hour, met: met, commands: &commands}
		h.systems = []*system{onMemory(t), apart(t)}
		if rapid.IntRange(0, diskEvery-1).Draw(t, "disk") == 0 { // a commit on disk takes its time
			files++
			h.systems = append(h.systems, onDisk(t, filepath.Join(dir, fmt.Sprint(files))))
		}
		defer func() {
			for _, s := range h.systems {
				s.close()
			}
		}()
		histories++
		for _, reference := range references()[:rapid.SampledFrom([]int{2, 2, 1, 0}).Draw(t, "requested")] {
			details := model.Details{Amount: "10", Currency: "EUR", Destination: "DE-1"}
			h.do(t, model.Command{Verb: model.Request, Tenant: "default", Withdrawal: mint("default", reference), Reference: reference, Details: details}, "", nothing)
		}
		t.Repeat(map[string]func(*rapid.T){
			"": h.look, "request": h.request, "submit": h.submit, "submit another": h.submit, "report": h.report, "report another": h.report,
			"resolve": h.resolve, "release": h.release, "release another": h.release, "time passes": h.wait, "overtake": h.overtake,
		})
		if len(h.systems) > 2 {
			if diff := gocmp.Diff(h.systems[0].stored(), h.systems[2].stored()); diff != "" {
				t.Errorf("the logs differ (-memory +SQLite):\n%s", diff)
			}
		}
	})
	t.Logf("%d histories (%d of them on SQLite too), %d commands; answers: %v", histories, files, commands, met)
}

// diskEvery is how many histories there are to one that is made on SQLite too.
const diskEvery = 10

// history is one random history under way.
type history struct {
	*rapid.T
	reference *model.Ledger
	systems   []*system
	now       time.Duration
	sends     []model.Command // the submissions whose rail is at it
	looks     int
	met       map[string]int
	commands  *int
}

// do gives a command to the model and to every system, and compares the answers.
func (h *history) do(t *rapid.T, c model.Command, how string, missing without) model.Answer {
	c.Now = h.now
	if c.Verb == model.Submit {
		c.Deadline += c.Now
	}
	h.looks++
	process := h.looks % processes
	if lookup := c.Verb == model.Outcome || c.Verb == model.ClaimedBy || c.Verb == model.InFlight; !lookup {
		process = rapid.IntRange(0, processes-1).Draw(t, "process")
		*h.commands++
	}
	before := h.reference.Clone()
	want := h.reference.Do(c)
	if !before.Equal(h.reference) { // something is appended, and its answer may get lost
		fault := rapid.SampledFrom([]logtest.Fault{0, 0, 0, logtest.UnknownAfterCommit, logtest.UnknownBeforeCommit, logtest.NotExecuted}).Draw(t, "fault")
		if fault != 0 {
			h.systems[1].faults.Next(fault)
		}
	}
	for _, s := range h.systems {
		if diff := gocmp.Diff(want, s.do(h.Context(), process, c, how, missing)); diff != "" {
			t.Fatalf("%s answers otherwise (-model +ledger) to\n%+v without %q\n%s", s.name, c, missing, diff)
		}
	}
	met := fmt.Sprint(c.Verb, " ", want.Code)
	if want.Replayed {
		met += "replayed"
	}
	h.met[met]++
	return want
}

func (h *history) request(t *rapid.T) {
	c := h.command(t, model.Request)
	c.Reference = rapid.SampledFrom(references()).Draw(t, "reference")
	c.Withdrawal = mint(c.Tenant, c.Reference)
	c.Details = model.Details{
		Amount:      rapid.SampledFrom([]string{"10", "10.0", "10.25"}).Draw(t, "amount"),
		Currency:    rapid.SampledFrom([]string{"EUR", "EUR", "USD"}).Draw(t, "currency"),
		Destination: rapid.SampledFrom([]string{"DE-1", "DE-1", "DE-2"}).Draw(t, "destination"),
	}
	h.spoil(t, &c, map[string]func(){
		"amount":   func() { c.Details.Amount = rapid.SampledFrom(badAmounts()).Draw(t, "bad amount") },
		"currency": func() { c.Details.Currency = rapid.SampledFrom([]string{"", "eur", "E R"}).Draw(t, "bad currency") },
		"destination": func() {
			c.Details.Destination = rapid.SampledFrom([]string{"", " DE", "D\nE"}).Draw(t, "bad destination")
		},
		"reference": func() { c.Reference = rapid.SampledFrom([]string{"", "order 1", "ördер"}).Draw(t, "bad reference") },
	})
	h.do(t, c, "", nothing)
}

func (h *history) submit(t *rapid.T) {
	c := h.command(t, model.Submit)
	c.Deadline = rapid.SampledFrom([]time.Duration{30 * time.Minute, time.Hour}).Draw(t, "timeout")
	h.restate(t, &c)
	missing := nothing
	h.spoil(t, &c, map[string]func(){
		"key":        func() { c.Key = rapid.SampledFrom(badKeys()).Draw(t, "bad key") },
		"withdrawal": func() { c.Withdrawal = rapid.SampledFrom(badIDs()).Draw(t, "bad id") },
		"amount":     func() { c.Details.Amount = rapid.SampledFrom(badAmounts()[1:]).Draw(t, "bad amount") },
		"timeout":    func() { c.Deadline = rapid.SampledFrom([]time.Duration{-1, 25 * time.Hour}).Draw(t, "bad timeout") },
		"rail":       func() { missing = aRail },
	})
	if a := h.do(t, c, "", missing); a.Attempt > 0 {
		c.Attempt, c.Deadline = a.Attempt, h.now+c.Deadline
		h.sends = append(h.sends, c)
	}
}

// report lets the rail of one of the submissions under way answer, however late.
func (h *history) report(t *rapid.T) {
	if len(h.sends) == 0 {
		t.Skip("no rail is at it")
	}
	i := rapid.IntRange(0, len(h.sends)-1).Draw(t, "which")
	c := h.sends[i]
	h.sends = slices.Delete(h.sends, i, i+1)
	how := rapid.SampledFrom(ways()).Draw(t, "how")
	c.Verb, c.Deadline, c.Details = model.Report, 0, model.Details{}
	c.Reference = rapid.SampledFrom(railReferences()).Draw(t, "reference")
	c.MediaType = rapid.SampledFrom([]string{"", "text/plain", "application/x-odd; q=1"}).Draw(t, "media type")
	c.Body = rapid.SampledFrom([]string{"", "done", "{\"odd\" : \"\xff\u2028<>\"}\r\n\x00"}).Draw(t, "body")
	c.Result, _ = answering(how, c.Reference, c.MediaType, c.Body)
	h.do(t, c, how, nothing)
}

func (h *history) resolve(t *rapid.T) {
	c := h.command(t, model.Resolve)
	if rapid.IntRange(0, 3).Draw(t, "says the withdrawal") == 0 {
		c.Withdrawal = ""
	}
	h.restate(t, &c)
	if c.Result = rapid.SampledFrom([]string{"sent", "failed"}).Draw(t, "result"); c.Result == "sent" {
		c.Reference = rapid.SampledFrom(railReferences()).Draw(t, "reference")
	}
	h.see(t, &c)
	missing := nothing
	h.spoil(t, &c, map[string]func(){
		"key":        func() { c.Key = rapid.SampledFrom(badKeys()).Draw(t, "bad key") },
		"withdrawal": func() { c.Withdrawal = rapid.SampledFrom(badIDs()[1:]).Draw(t, "bad id") },
		"amount":     func() { c.Details.Amount = rapid.SampledFrom(badAmounts()[1:]).Draw(t, "bad amount") },
		"result":     func() { c.Result = rapid.SampledFrom([]string{"", "refused", "unknown"}).Draw(t, "bad result") },
		"sent as":    func() { c.Result, c.Reference = "sent", "" },
		"failed as":  func() { c.Result, c.Reference = "failed", "tx" },
		"person":     func() { missing = rapid.SampledFrom([]without{anActor, aReason, anEvidence}).Draw(t, "without") },
	})
	if c.Malformed {
		c.Withdrawal = cmp.Or(c.Withdrawal, ids()[0]) // without it, the key is looked up before the rest is read
	}
	h.do(t, c, "", missing)
}

func (h *history) release(t *rapid.T) {
	c := h.command(t, model.Release)
	c.Withdrawal = ""
	h.see(t, &c)
	missing := nothing
	h.spoil(t, &c, map[string]func(){
		"key":    func() { c.Key = rapid.SampledFrom(badKeys()).Draw(t, "bad key") },
		"person": func() { missing = rapid.SampledFrom([]without{anActor, aReason, anEvidence}).Draw(t, "without") },
	})
	h.do(t, c, "", missing)
}

// overtake closes or frees, as soon as that can be, a key whose rail is still at it.
func (h *history) overtake(t *rapid.T) {
	if len(h.sends) == 0 {
		t.Skip("no rail is at it")
	}
	under := h.sends[rapid.IntRange(0, len(h.sends)-1).Draw(t, "which")]
	c := model.Command{Verb: model.Release, Tenant: under.Tenant, Key: under.Key}
	if h.now = max(h.now, under.Deadline+margin); rapid.Bool().Draw(t, "resolve") {
		c.Verb, c.Withdrawal, c.Result = model.Resolve, under.Withdrawal, "failed"
	}
	c.Seen = h.reference.Do(model.Command{Verb: model.ClaimedBy, Tenant: under.Tenant, Withdrawal: under.Withdrawal}).Events
	h.do(t, c, "", nothing)
}

// wait moves the clock, either way, often to the very moment at which a deadline is over.
func (h *history) wait(t *rapid.T) {
	h.now += rapid.SampledFrom([]time.Duration{
		-2 * time.Hour, -time.Hour, -time.Minute, -time.Microsecond,
		time.Microsecond, time.Minute, 30 * time.Minute, time.Hour, time.Hour + time.Minute, 3 * time.Hour,
	}).Draw(t, "passes")
}

// look compares everything that can be looked up.
func (h *history) look(t *rapid.T) {
	for _, tenant := range tenants() {
		for _, key := range keys() {
			h.do(t, model.Command{Verb: model.Outcome, Tenant: tenant, Key: key}, "", nothing)
		}
		for _, id := range ids() {
			h.do(t, model.Command{Verb: model.ClaimedBy, Tenant: tenant, Withdrawal: id}, "", nothing)
		}
		h.do(t, model.Command{Verb: model.InFlight, Tenant: tenant}, "", nothing)
	}
}

// command draws who commands what: mostly what exists, at times another tenant's.
func (h *history) command(t *rapid.T, v model.Verb) model.Command {
	return model.Command{
		Verb: v, Tenant: tenants()[max(0, rapid.IntRange(-8, 1).Draw(t, "tenant"))],
		Key: keys()[max(0, rapid.IntRange(-2, 2).Draw(t, "key"))], Withdrawal: ids()[max(0, rapid.IntRange(-6, 3).Draw(t, "withdrawal"))],
	}
}

// restate draws what a caller believes: mostly nothing.
func (h *history) restate(t *rapid.T, c *model.Command) {
	if rapid.IntRange(0, 3).Draw(t, "restates") == 0 {
		c.Details = model.Details{
			Amount:      rapid.SampledFrom([]string{"", "10", "10.00", "10.25"}).Draw(t, "amount"),
			Currency:    rapid.SampledFrom([]string{"", "EUR", "eur"}).Draw(t, "currency"),
			Destination: rapid.SampledFrom([]string{"", "DE-1", "nowhere"}).Draw(t, "destination"),
		}
	}
}

// see draws how many events a person saw: mostly as many as there are.
func (h *history) see(t *rapid.T, c *model.Command) {
	seen := h.reference.Do(model.Command{Verb: model.Outcome, Tenant: c.Tenant, Key: c.Key})
	if c.Withdrawal != "" {
		seen = h.reference.Do(model.Command{Verb: model.ClaimedBy, Tenant: c.Tenant, Withdrawal: c.Withdrawal})
	}
	c.Seen = max(1, seen.Events)
	switch rapid.IntRange(-6, 3).Draw(t, "seen") {
	case 1:
		c.Seen = 0
	case 2:
		c.Seen--
	case 3:
		c.Seen++
	}
}

// spoil makes one in ten commands malformed, in one of the ways given.
func (h *history) spoil(t *rapid.T, c *model.Command, ways map[string]func()) {
	if rapid.IntRange(0, 9).Draw(t, "spoil") != 9 {
		return
	}
	var names []string
	for name := range ways {
		names = append(names, name)
	}
	slices.Sort(names)
	ways[rapid.SampledFrom(names).Draw(t, "spoilt")]()
	c.Malformed = true
}

func tenants() []string        { return []string{"default", "other"} }
func keys() []string           { return []string{"K1", "K2", "K3"} }
func references() []string     { return []string{"order-1", "order-2", "order-3"} }
func railReferences() []string { return []string{"tx-1", "tx-2"} }

// ids are the ids that can be requested by the first tenant, and one of the other's.
func ids() []string {
	var all []string
	for _, r := range references() {
		all = append(all, mint("default", r))
	}
	return append(all, mint("other", references()[0]))
}

func badKeys() []string { return []string{"", "K 1", "Кey", "K\n", fmt.Sprintf("%0256d", 1)} }

func badIDs() []string { return []string{"", "w", "order-1", mint("default", "order-1") + "a"} }

func badAmounts() []string {
	return []string{"", "0", "0.00", "-1", "+10", "010", " 10", "1e1", "10.", ".5", "1,5", "٣", fmt.Sprintf("1%038d", 0), fmt.Sprintf("0.%018d1", 0)}
}
