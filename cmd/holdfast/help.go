package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// textWidth is where the lines of help wrap.
const textWidth = 88

// printUsage prints the help of the program as a whole.
func (c *call) printUsage(commands []command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: a withdrawal is paid at most once, and everyone who asks is told the truth.\n\n", programName)
	fmt.Fprintf(&b, "Usage: %s COMMAND [--FLAG VALUE ...]\n\nCommands:\n", programName)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, command := range commands {
		fmt.Fprintf(table, "  %s\t%s\n", command.name, command.usage)
	}
	table.Flush()
	writeOptions(&b, "Flags of every command", c.globals())
	fmt.Fprintf(&b, "\nMore about a command: %s help COMMAND. Which build this is: %s --version, or -v.\n", programName, programName)
	b.WriteString("\nExit status: 0 done, 2 invalid request, 3 not found, 4 conflict, 5 in flight or outcome\n" +
		"unknown, 6 not allowed, 7 damaged, 8 unavailable (the same key is safe to retry).\n" +
		"\nStart with: " + programName + " demo\n")
	return c.print(b.String())
}

// printHelp prints the help of one command.
func (c *call) printHelp(command command, options []*option) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s.\n\nUsage: %s %s", programName, command.name, command.usage, programName, command.name)
	for _, o := range command.options {
		if o.required {
			fmt.Fprintf(&b, " %s", o)
		}
	}
	b.WriteString(" [--FLAG VALUE ...]\n")
	for _, paragraph := range command.description {
		fmt.Fprintf(&b, "\n%s\n", wrap(paragraph, textWidth))
	}
	b.WriteString("\nExamples:\n")
	for _, example := range command.examples {
		fmt.Fprintf(&b, "  %s %s\n", programName, example)
	}
	own := options[:len(command.options)]
	if len(own) > 0 {
		writeOptions(&b, "Flags", own)
	}
	writeOptions(&b, "Flags of every command", options[len(command.options):])
	return c.print(b.String())
}

func writeOptions(b *strings.Builder, title string, options []*option) {
	fmt.Fprintf(b, "\n%s:\n", title)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, o := range options {
		fmt.Fprintf(table, "  %s\t%s\n", o, o.describe())
	}
	table.Flush()
}

// wrap breaks a paragraph into lines.
func wrap(paragraph string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(paragraph) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
