package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"holdfast/events"
	"holdfast/rail"
	"holdfast/rail/simulated"
)

const simulatedScheme = "simulated:"

func railOption() *option {
	return &option{name: "rail", placeholder: "simulated:FILE", env: "HOLDFAST_RAIL", usage: "the rail, and the file of its book"}
}

// bookOf returns the file of a simulated rail's book.
func bookOf(spec string) (string, error) {
	file, ok := strings.CutPrefix(spec, simulatedScheme)
	if !ok || file == "" {
		return "", fmt.Errorf("rail %s is not known; write simulated:FILE", events.Quote(spec))
	}
	return file, nil
}

// openRail opens the rail that is named on the command line, to be paid through. The
// fault is "" for none.
func openRail(p *program, spec, fault string) (rail.Rail, error) {
	file, err := bookOf(spec)
	if err != nil {
		return nil, err
	}
	options := &simulated.Options{Now: p.now}
	if fault != "" {
		f, err := simulated.ParseFault(fault)
		if err != nil {
			return nil, err
		}
		options.Fault = func(rail.Payment) simulated.Fault { return f }
	}
	r, err := simulated.Open(file, options)
	if err != nil {
		return nil, fmt.Errorf("rail %s cannot be used: %w", events.Quote(spec), err)
	}
	return r, nil
}

// ask asks a rail what it knows of a withdrawal. A book that is not there is not made.
func (c *call) ask(ctx context.Context, spec string, id events.WithdrawalID) (rail.Knowledge, error) {
	file, err := bookOf(spec)
	if err != nil {
		return rail.Knowledge{}, err
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return rail.Knowledge{}, fmt.Errorf("there is no book %s", events.Quote(file))
	}
	r, err := c.openRail(c.program, spec, "")
	if err != nil {
		return rail.Knowledge{}, err
	}
	return r.LookUp(ctx, id)
}

// bookDocument is the result of rail-book.
type bookDocument struct {
	Entries []entryDocument `json:"entries"`
	// Left counts the payments that left for each withdrawal in the book.
	Left map[string]int `json:"left"`
}

type entryDocument struct {
	Time        string `json:"time"`
	Result      string `json:"result"`
	Reference   string `json:"reference,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Withdrawal  string `json:"withdrawal"`
	Account     string `json:"account"`
	Amount      string `json:"amount"`
	Currency    string `json:"currency"`
	Destination string `json:"destination"`
	Attempt     int    `json:"attempt"`
}

func (c *call) railBook() command {
	spec := railOption()
	spec.required = true
	withdrawal := text("withdrawal", "ID", "only this withdrawal")
	return command{
		name:  "rail-book",
		usage: "print the simulated rail's own book: what really left",
		description: []string{
			"Prints what the simulated rail has booked, oldest first: payments that left and payments that it refused. " +
				"The book knows nothing of the ledger, which is what makes it evidence. It exists for the simulated rail alone.",
		},
		examples: []string{"rail-book --rail simulated:book.jsonl"},
		options:  []*option{spec, withdrawal},
		run: func(context.Context) error {
			file, err := bookOf(spec.value)
			if err != nil {
				return c.usage("%w", err)
			}
			d := bookDocument{Entries: []entryDocument{}, Left: map[string]int{}}
			for e, err := range simulated.Entries(file) {
				switch {
				case errors.Is(err, fs.ErrNotExist):
					return c.usage("there is no book %s", events.Quote(file))
				case err != nil:
					return c.usage("the book %s cannot be read: %w", events.Quote(file), err)
				case withdrawal.value == "" || withdrawal.value == string(e.Withdrawal):
					d.add(e)
				}
			}
			return c.result(d, d.page)
		},
	}
}

func (d *bookDocument) add(e simulated.Entry) {
	result := events.ResultSent
	if e.Refused {
		result = events.ResultRefused
	} else {
		d.Left[string(e.Withdrawal)]++
	}
	d.Entries = append(d.Entries, entryDocument{
		Time: stamp(e.Time), Result: string(result), Reference: e.Reference, Reason: e.Reason,
		Withdrawal: string(e.Withdrawal), Account: e.Account, Amount: e.Amount.String(), Currency: e.Currency,
		Destination: e.Destination, Attempt: e.Attempt,
	})
}

func (d *bookDocument) page(p *page) {
	if len(d.Entries) == 0 {
		p.line("The book is empty: nothing left.")
		return
	}
	var rows [][]string
	for _, e := range d.Entries {
		rows = append(rows, []string{e.Time, e.Result, e.Withdrawal, fmt.Sprint(e.Attempt), e.Amount + " " + e.Currency,
			legible(e.Destination), legible(cmp.Or(e.Reference, "-")), legible(cmp.Or(e.Reason, "-"))})
	}
	p.table([]string{"TIME", "RESULT", "WITHDRAWAL", "ATTEMPT", "AMOUNT", "DESTINATION", "REFERENCE", "REASON"}, rows)
}
