package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/internal/shell"
	"holdfast/projections"
)

// dataOption says where the projections of the log are.
func dataOption() *option {
	return &option{name: "data", placeholder: "DIR", env: "HOLDFAST_DATA",
		usage: "where the projections are; by default beside the log, where that is a file"}
}

// withProjections runs a function with the log and the projections of it.
func (c *call) withProjections(ctx context.Context, data *option, do func(*projections.Set, eventlog.Log) error) error {
	dir := data.value
	if dir == "" {
		file, ok := strings.CutPrefix(place(c.log.value), sqliteScheme)
		if !ok {
			return c.usage("this log has no place beside it: give --data DIR (or HOLDFAST_DATA in the environment)")
		}
		dir = file + "-projections"
	}
	return c.withLog(ctx, reads, func(log eventlog.Log) (err error) {
		set, err := projections.Open(dir, log, &projections.Options{Clock: c.now})
		if err != nil {
			return err
		}
		defer func() {
			if closing := set.Close(); err == nil && closing != nil {
				err = fmt.Errorf("the projections could not be closed: %w", closing)
			}
		}()
		return c.projected(do(set, log))
	})
}

// projected gives an error of projections its code, and what can be done about it.
func (c *call) projected(err error) error {
	var poison *projections.Poison
	switch {
	case errors.As(err, &poison):
		return &tryError{&aggregate.Refusal{Code: aggregate.CodeDamaged, Message: "an event cannot be understood, and it is not passed over; what was live before still is", Cause: err}, c.command("verify")}
	case errors.Is(err, projections.ErrOtherLog):
		return &tryError{aggregate.Invalid(err), c.command("projections rebuild", "--all")}
	case errors.Is(err, projections.ErrNothingToCompare):
		return &tryError{aggregate.Invalid(err), c.command("projections list")}
	}
	return err
}

// named returns the projections that a command is about.
func (c *call) named(name *option, all bool) ([]*projections.Projection, error) {
	var names []string
	for _, p := range projections.All() {
		if p.Name == name.value {
			return []*projections.Projection{p}, nil
		}
		names = append(names, p.Name)
	}
	switch {
	case all && name.value == "":
		return projections.All(), nil
	case name.value == "":
		return nil, c.usage("which projection: %s", strings.Join(names, ", "))
	}
	if near, ok := nearest(name.value, names); ok {
		return nil, c.usage("there is no projection %q; did you mean %s?", name.value, near)
	}
	return nil, c.usage("there is no projection %q; there are %s", name.value, strings.Join(names, ", "))
}

func projectionName() *option { return text("name", "NAME", "the projection; it can be given bare") }

type listedDocument struct {
	Projection string `json:"projection"`
	Version    int    `json:"version"`
	File       string `json:"file"`
	Live       bool   `json:"live"`
	Known      bool   `json:"known"`
	Position   uint64 `json:"position"`
	Events     uint64 `json:"events"`
	Bytes      int64  `json:"bytes"`
}

func (c *call) projectionsList() command {
	data := dataOption()
	return command{
		name:  "projections list",
		usage: "list the files of the read side, and how far each is",
		description: []string{
			"Lists the files of all projections: which are live, of which version, and up to which position of the log. Files of a " +
				"version that this build does not know belong to another build, and are left alone.",
		},
		examples: []string{"projections list", "projections list --data /var/lib/holdfast/projections --json"},
		options:  []*option{data},
		run: func(ctx context.Context) error {
			return c.withProjections(ctx, data, func(set *projections.Set, _ eventlog.Log) error {
				list, err := set.List(ctx)
				if err != nil {
					return err
				}
				documents := []listedDocument{}
				rows := [][]string{}
				for _, l := range list {
					documents = append(documents, listedDocument{
						Projection: l.Projection, Version: l.Version, File: l.File, Live: l.Live, Known: l.Known,
						Position: uint64(l.Position), Events: l.Events, Bytes: l.Bytes,
					})
					state, position := "kept", fmt.Sprint(l.Position)
					switch {
					case l.Live:
						state = "live"
					case !l.Known:
						state, position = "another build's", "-"
					}
					rows = append(rows, []string{l.Projection, fmt.Sprint(l.Version), state, position, fmt.Sprint(l.Bytes), l.File})
				}
				return c.result(map[string]any{"projections": documents}, func(p *page) {
					if len(rows) == 0 {
						p.line("There are none yet. They are built by: %s", shell.Join(c.command("projections rebuild", "--all")...))
						return
					}
					p.table([]string{"PROJECTION", "VERSION", "STATE", "POSITION", "BYTES", "FILE"}, rows)
				})
			})
		},
	}
}

type rebuiltDocument struct {
	Projection string              `json:"projection"`
	Version    int                 `json:"version"`
	File       string              `json:"file"`
	Old        string              `json:"old,omitempty"`
	Position   uint64              `json:"position"`
	Events     uint64              `json:"events"`
	Seconds    float64             `json:"seconds"`
	Comparison *comparisonDocument `json:"comparison,omitempty"`
	Uncompared string              `json:"uncompared,omitempty"`
}

func (c *call) projectionsRebuild() command {
	data, name, all := dataOption(), projectionName(), toggle("all", "every projection, one after another")
	return command{
		name:     "projections rebuild",
		usage:    "make the rows of the read side again from the log",
		argument: name,
		description: []string{
			"Reads the whole log and makes a new file beside the live one, which is read until the new one is complete. Commands go on " +
				"meanwhile. The two are compared at one position of the log, and the new one is then made live, at once. The old one " +
				"stays until drop-old.",
			"A rebuild that was interrupted or killed goes on where it was. An event that cannot be understood ends it with the event's " +
				"place, and the old file stays live.",
		},
		examples: []string{"projections rebuild outcomes", "projections rebuild --all --json"},
		options:  []*option{name, all, data},
		run: func(ctx context.Context) error {
			list, err := c.named(name, all.on())
			switch {
			case all.on() && name.given:
				return c.usage("--all and a name are opposites")
			case err != nil:
				return err
			}
			return c.withProjections(ctx, data, func(set *projections.Set, log eventlog.Log) error {
				documents := []rebuiltDocument{}
				for _, p := range list {
					done, seconds, err := c.rebuilt(ctx, set, log, p)
					if err != nil {
						return err
					}
					d := rebuiltDocument{
						Projection: done.Projection, Version: done.Version, File: done.File, Old: done.Old, Position: uint64(done.Position),
						Events: done.Events, Seconds: seconds, Comparison: documentOf(done.Comparison),
					}
					if done.Uncompared != nil {
						d.Uncompared = oneLine(done.Uncompared.Error())
					}
					documents = append(documents, d)
				}
				return c.result(map[string]any{"rebuilt": documents}, func(p *page) {
					for _, d := range documents {
						p.line("Rebuilt %s: %s up to position %d, in %.1f s", d.Projection, counted(int(d.Events), "event"), d.Position, d.Seconds)
						switch {
						case d.Comparison != nil:
							p.comparison(d.Comparison)
						case d.Uncompared != "":
							p.line("  Not compared with the old one: %s", legible(d.Uncompared))
						}
						if d.Old != "" {
							p.line("  %s is kept until: %s", d.Old, shell.Join(c.command("projections drop-old", "--name", d.Projection)...))
						}
					}
				})
			})
		},
	}
}

// rebuilt rebuilds one projection and shows how far it is.
func (c *call) rebuilt(ctx context.Context, set *projections.Set, log eventlog.Log, p *projections.Projection) (projections.Rebuilt, float64, error) {
	progress := c.progressOver(ctx, log)
	began := time.Now()
	done, err := set.Rebuild(ctx, p, progress.at)
	progress.stop()
	return done, time.Since(began).Seconds(), err
}

// progressOver shows progress towards the end of a log.
func (c *call) progressOver(ctx context.Context, log eventlog.Log) *progress {
	total, _, err := head(ctx, log)
	if err != nil {
		total = 0 // what reads the log says what is wrong; the bar only goes without an end
	}
	return c.startProgress(total)
}

type diffDocument struct {
	Projection string              `json:"projection"`
	Older      string              `json:"older"`
	Newer      string              `json:"newer"`
	Comparison *comparisonDocument `json:"comparison"`
}

func (c *call) projectionsDiff() command {
	data, name := dataOption(), projectionName()
	return command{
		name:     "projections diff",
		usage:    "compare the live file of a projection with the one before it",
		argument: name,
		description: []string{
			"Compares two files of a projection row by row, at one position of the log: the live one, and one that is being built or " +
				"was live before. Where there is only a file of another version, that is taken as it is, and the columns that both have " +
				"are compared.",
		},
		examples: []string{"projections diff outcomes", "projections diff totals --json"},
		options:  []*option{name, data},
		run: func(ctx context.Context) error {
			list, err := c.named(name, false)
			if err != nil {
				return err
			}
			return c.withProjections(ctx, data, func(set *projections.Set, _ eventlog.Log) error {
				older, newer, comparison, err := set.Diff(ctx, list[0])
				if err != nil {
					return err
				}
				d := diffDocument{Projection: list[0].Name, Older: older, Newer: newer, Comparison: documentOf(comparison)}
				return c.result(d, func(p *page) {
					p.line("From %s to %s:", older, newer)
					p.comparison(d.Comparison)
				})
			})
		},
	}
}

type checkedDocument struct {
	Projection string              `json:"projection"`
	Same       bool                `json:"same"`
	Comparison *comparisonDocument `json:"comparison"`
}

func (c *call) projectionsVerify() command {
	data, name := dataOption(), projectionName()
	return command{
		name:     "projections verify",
		usage:    "check the rows of the read side against the log",
		argument: name,
		description: []string{
			"Makes the rows of one projection, or of all, again from the log in a file that is thrown away, and compares the live file " +
				"with it. The exit status is 7 where a row is another one than the log says; rebuild mends that.",
		},
		examples: []string{"projections verify", "projections verify outcomes --json"},
		options:  []*option{name, data},
		run: func(ctx context.Context) error {
			list, err := c.named(name, true)
			if err != nil {
				return err
			}
			return c.withProjections(ctx, data, func(set *projections.Set, log eventlog.Log) error {
				documents := []checkedDocument{}
				for _, p := range list {
					progress := c.progressOver(ctx, log)
					comparison, err := set.Verify(ctx, p, progress.at)
					progress.stop()
					if err != nil {
						return err
					}
					documents = append(documents, checkedDocument{p.Name, comparison.Same(), documentOf(comparison)})
				}
				if err := c.printChecked(documents); err != nil {
					return err
				}
				return c.wrongRows(documents)
			})
		},
	}
}

func (c *call) printChecked(documents []checkedDocument) error {
	return c.result(map[string]any{"checked": documents}, func(p *page) {
		for _, d := range documents {
			p.line("%s:", d.Projection)
			p.comparison(d.Comparison)
		}
	})
}

// wrongRows is the refusal of the first projection whose rows are not those of the log.
func (c *call) wrongRows(documents []checkedDocument) error {
	i := slices.IndexFunc(documents, func(d checkedDocument) bool { return !d.Same })
	if i < 0 {
		return nil
	}
	name := documents[i].Projection
	return &tryError{&aggregate.Refusal{Code: aggregate.CodeDamaged, Message: "the rows of " + name + " are not those of the log, which is the truth"},
		c.command("projections rebuild", "--name", name)}
}

func (c *call) projectionsDropOld() command {
	data, name, others := dataOption(), projectionName(), toggle("older-versions", "also the files of older versions, which older builds may still use")
	return command{
		name:     "projections drop-old",
		usage:    "delete the files that a rebuild has replaced",
		argument: name,
		description: []string{
			"Deletes the files of one projection, or of all, that were live before the one that is live now. What is deleted can be made " +
				"again from the log.",
		},
		examples: []string{"projections drop-old", "projections drop-old outcomes --older-versions --json"},
		options:  []*option{name, others, data},
		run: func(ctx context.Context) error {
			list, err := c.named(name, true)
			if err != nil {
				return err
			}
			return c.withProjections(ctx, data, func(set *projections.Set, _ eventlog.Log) error {
				dropped := []string{}
				for _, p := range list {
					files, err := set.DropOld(p, others.on())
					if err != nil {
						return err
					}
					dropped = append(dropped, files...)
				}
				return c.result(map[string]any{"dropped": dropped}, func(p *page) {
					for _, file := range dropped {
						p.line("Deleted %s", file)
					}
					if len(dropped) == 0 {
						p.line("There was nothing to delete.")
					}
				})
			})
		},
	}
}
