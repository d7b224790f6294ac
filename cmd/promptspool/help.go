package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/dashboard/docs"
	"promptspool/cmd/promptspool/internal/print"
)

const (
	helpColumns   = 100 // where the output is not a terminal
	helpNameRunes = 26  // of a flag or command with its explanation beside it; below a longer one
)

// examples has the lines that most people want first and, after an empty one, examples of every command.
//
//go:embed examples.txt
var examples string

// examplesOf returns the examples of a command; of a group, the first of each of its commands.
func examplesOf(c *cli.Command, name string) (lines []string) {
	for _, sub := range c.Subcommands {
		lines = append(lines, examplesOf(sub, name+" "+sub.Name)[:1]...)
	}
	_, all, _ := strings.Cut(examples, "\n\n")
	for line := range strings.Lines(all) {
		if len(c.Subcommands) == 0 && strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// printHelp prints the help of the program or of a command, in the place of the library's template.
func printHelp(w io.Writer, _ string, about any) {
	help{w, cmp.Or(print.TerminalWidth(w), helpColumns)}.print(about)
}

// help writes the help of a command.
type help struct {
	out     io.Writer
	columns int
}

// print writes the help of the program, a *cli.App, or of a command, a *cli.Command.
func (h help) print(about any) {
	if app, isApp := about.(*cli.App); isApp {
		h.text("Promptspool keeps " + app.Usage + ".")
		first, _, _ := strings.Cut(examples, "\n\n")
		h.lines("START WITH", strings.Split(first, "\n"))
		h.entries("COMMANDS", commandRows(app.Commands))
		h.lastText("`promptspool COMMAND --help` explains a command, and `promptspool docs` has the documentation.")
		return
	}
	c := about.(*cli.Command)
	h.text(sentence(c.Usage))
	h.lines("USAGE", []string{usageOf(c)})
	h.lines("EXAMPLES", examplesOf(c, c.HelpName))
	h.entries("COMMANDS", commandRows(c.Subcommands))
	for _, group := range groupsOf(c.Flags) {
		h.entries(group.heading, group.rows)
	}
	h.variables(c.Flags)
}

// sentence makes one of a text without a capital and a full stop.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// usageOf is what a command's line is made of.
func usageOf(c *cli.Command) string {
	flags := "[flags]"
	if len(c.Subcommands) > 0 {
		flags = "COMMAND [flags]"
	}
	return strings.TrimSpace(c.HelpName + " " + flags + " " + c.ArgsUsage)
}

func commandRows(commands []*cli.Command) (rows [][2]string) {
	for _, c := range commands {
		if !c.Hidden {
			rows = append(rows, [2]string{c.Name, c.Usage})
		}
	}
	return rows
}

// flagGroup is the flags under one heading.
type flagGroup struct {
	heading string
	rows    [][2]string
}

// groupsOf returns flags by their groups, in the order in which these begin; those of none come first.
func groupsOf(flags []cli.Flag) []flagGroup {
	groups := []flagGroup{{heading: "FLAGS"}}
	for _, f := range flags {
		if f == cli.HelpFlag {
			continue
		}
		heading := strings.ToUpper(f.(cli.CategorizableFlag).GetCategory())
		i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.heading == heading })
		switch {
		case heading == "":
			i = 0
		case i < 0:
			i, groups = len(groups), append(groups, flagGroup{heading: heading})
		}

		names, usage, _ := strings.Cut(cli.FlagStringer(f), "\t")
		usage, _, _ = strings.Cut(usage, " [$")
		groups[i].rows = append(groups[i].rows, [2]string{names, usage})
	}
	return groups
}

func (h help) text(text string) { fmt.Fprint(h.out, docs.Wrap(text, "", "", h.columns)) }

// lastText writes a text after everything else.
func (h help) lastText(text string) { fmt.Fprint(h.out, "\n"+docs.Wrap(text, "", "", h.columns)) }

// lines writes lines as they are, under a heading: what is pasted must not be wrapped.
func (h help) lines(heading string, lines []string) {
	fmt.Fprintf(h.out, "\n%s\n  %s\n", heading, strings.Join(lines, "\n  "))
}

// entries writes names with their explanations, under a heading.
func (h help) entries(heading string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	widest := 0
	for _, row := range rows {
		if len(row[0]) <= helpNameRunes {
			widest = max(widest, len(row[0]))
		}
	}

	fmt.Fprintln(h.out, "\n"+heading)
	indent := strings.Repeat(" ", widest+4)
	for _, row := range rows {
		start := fmt.Sprintf("  %-*s  ", widest, row[0])
		if len(row[0]) > widest {
			fmt.Fprintln(h.out, "  "+row[0])
			start = indent
		}
		fmt.Fprint(h.out, docs.Wrap(row[1], start, indent, h.columns))
	}
}

// variables writes how the variables of a command's flags are called, by an example of each kind.
func (h help) variables(flags []cli.Flag) {
	var kinds, texts []string
	for _, f := range flags {
		name := strings.ToUpper(strings.ReplaceAll(f.Names()[0], "-", "_"))
		for _, variable := range f.(cli.DocGenerationFlag).GetEnvVars() {
			kind := strings.TrimSuffix(variable, name)
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
				texts = append(texts, variable+" for --"+f.Names()[0])
			}
		}
	}
	if texts != nil {
		h.lastText("Every flag has a variable, such as " + strings.Join(texts, " and ") + ".")
	}
}
