package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// option is a flag of a command. It is stricter than those of the library: given twice
// or given empty is an error, and so is a value that is itself one of the flags, which
// is what `--sent --reason x` would otherwise make of a forgotten reference.
type option struct {
	name        string
	short       string
	placeholder string // "" for a toggle
	usage       string
	env         string // the variable that stands in for the flag; "" for none
	initial     string // the value when there is neither
	required    bool

	value     string
	given     bool // on the command line
	complaint error
	isFlag    func(word string) bool
}

var _ cli.VisibleFlag = (*option)(nil)

func text(name, placeholder, usage string) *option {
	return &option{name: name, placeholder: placeholder, usage: usage}
}

func needed(name, placeholder, usage string) *option {
	return &option{name: name, placeholder: placeholder, usage: usage, required: true}
}

func toggle(name, usage string) *option { return &option{name: name, usage: usage} }

// Set takes the value from the command line.
func (o *option) Set(value string) error {
	switch {
	case o.given:
		o.complaint = fmt.Errorf("--%s is given twice", o.name)
	case o.placeholder == "" && value != "true" && value != "false":
		o.complaint = fmt.Errorf("--%s takes no value", o.name)
	case o.placeholder != "" && value == "":
		o.complaint = fmt.Errorf("--%s is empty", o.name)
	case o.placeholder != "" && o.isFlag(value):
		o.complaint = fmt.Errorf("--%s needs a value, and is followed by %s", o.name, value)
	}
	o.value, o.given = value, true
	return o.complaint
}

// settle fills in what was not given: from the environment, then the initial value.
func (o *option) settle(env func(string) (string, bool)) error {
	if o.given {
		return nil
	}
	o.value = o.initial
	set := false
	if o.env != "" {
		var value string
		if value, set = env(o.env); value != "" {
			o.value, set = value, false
		}
	}
	switch {
	case set && o.initial != "": // and not the default, behind the back of who meant another
		return fmt.Errorf("%s is empty; set it to what is meant, or unset it", o.env)
	case o.required && o.value == "" && o.env != "":
		return fmt.Errorf("--%s is required (or %s in the environment)", o.name, o.env)
	case o.required && o.value == "":
		return fmt.Errorf("--%s is required", o.name)
	}
	return nil
}

// on reports whether a toggle is set.
func (o *option) on() bool { return o.value == "true" }

// duration reads the value as a duration; what is not given is zero.
func (o *option) duration() (time.Duration, error) {
	if o.value == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(o.value)
	if err != nil {
		return 0, fmt.Errorf("--%s %q is not a duration, such as 30s or 2m", o.name, o.value)
	}
	if d <= 0 {
		return 0, fmt.Errorf("--%s %s must be more than zero", o.name, d)
	}
	return d, nil
}

// Apply, Names, IsSet, IsVisible and String make the option a cli.Flag; String, Set and
// IsBoolFlag make it a flag.Value. The short name is not among the Names, because the
// library sets a flag of several names again under each of them.
func (o *option) Apply(set *flag.FlagSet) error {
	set.Var(o, o.name, o.usage)
	if o.short != "" {
		set.Var(o, o.short, o.usage)
	}
	return nil
}

func (o *option) Names() []string  { return []string{o.name} }
func (o *option) IsSet() bool      { return o.given }
func (o *option) IsVisible() bool  { return true }
func (o *option) IsBoolFlag() bool { return o.placeholder == "" }

// String returns the option as it stands in a command's help.
func (o *option) String() string { return "--" + strings.TrimSpace(o.name+" "+o.placeholder) }

// describe returns what the option is for, with where else its value comes from.
func (o *option) describe() string {
	var from []string
	if o.required {
		from = append(from, "required")
	}
	if o.env != "" {
		from = append(from, "env "+o.env)
	}
	if o.initial != "" {
		from = append(from, "default "+o.initial)
	}
	if len(from) == 0 {
		return o.usage
	}
	return o.usage + " (" + strings.Join(from, ", ") + ")"
}

// settleAll settles every option and returns all that is wrong.
func settleAll(options []*option, env func(string) (string, bool)) error {
	var errs []error
	for _, o := range options {
		errs = append(errs, o.settle(env))
	}
	return errors.Join(errs...)
}
