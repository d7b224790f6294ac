package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"promptspool/api/dashboard/docs"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/config"
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
		found := examplesOf(sub, name+" "+sub.Name)
		lines = append(lines, found[:min(len(found), 1)]...)
	}
	_, all, _ := strings.Cut(examples, "\n\n")
	for line := range strings.Lines(all) {
		line = strings.TrimSpace(line)
		if len(c.Subcommands) == 0 && strings.HasPrefix(line+" ", name+" ") {
			lines = append(lines, line)
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
		h.text("\n`promptspool COMMAND --help` explains a command, and `promptspool docs` has the documentation.")
		return
	}
	c := about.(*cli.Command)
	h.text(sentence(c.Usage))
	h.lines("USAGE", []string{usageOf(c)})
	h.lines("EXAMPLES", examplesOf(c, c.HelpName))
	h.entries("COMMANDS", commandRows(c.Subcommands))
	h.flags(c.Flags)
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

// flags writes flags by their groups, those of none first, and how their variables are called.
func (h help) flags(flags []cli.Flag) {
	headings, rows, variable := []string{"FLAGS"}, map[string][][2]string{}, ""
	for _, f := range flags {
		heading := cmp.Or(strings.ToUpper(f.(cli.CategorizableFlag).GetCategory()), headings[0])
		if !slices.Contains(headings, heading) {
			headings = append(headings, heading)
		}
		names, usage, _ := strings.Cut(cli.FlagStringer(f), "\t")
		usage, name, ours := strings.Cut(usage, " [$")
		if ours {
			rows[heading] = append(rows[heading], [2]string{names, usage})
			variable = strings.TrimSuffix(name, "]") + " for --" + f.Names()[0]
		}
	}

	for _, heading := range headings {
		h.entries(heading, rows[heading])
	}
	if variable != "" {
		h.text("\nEvery flag has a variable, such as " + variable + ".")
	}
}

// text writes a paragraph, after an empty line if it begins with one.
func (h help) text(text string) {
	rest := strings.TrimPrefix(text, "\n")
	fmt.Fprint(h.out, text[:len(text)-len(rest)], wrap(rest, "", "", h.columns))
}

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
		if n := len(row[0]); n <= helpNameRunes {
			widest = max(widest, n)
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
		fmt.Fprint(h.out, wrap(row[1], start, indent, h.columns))
	}
}

func docsCommand() *cli.Command {
	return config.Command("docs [PAGE]", "print a page of the documentation, or the list of pages", printDocs)
}

func printDocs(c *cli.Context) error {
	if c.NArg() > 1 {
		return config.Usagef(c, "unexpected argument %q: one page at a time", c.Args().Get(1))
	}
	if c.NArg() == 0 {
		listDocs(help{c.App.Writer, helpColumns})
		return nil
	}

	name := strings.TrimSuffix(c.Args().First(), ".md")
	page := docs.Find(name)
	if page == nil {
		hint := cmp.Or(words.DidYouMean(name, docs.Names()), "; `promptspool docs` lists the pages")
		return config.Usagef(c, "there is no page %q%s", name, hint)
	}
	_, err := fmt.Fprint(c.App.Writer, page.Source)

	return err
}

func listDocs(h help) {
	h.text("Print a page with `promptspool docs PAGE`. A running server shows the same pages at /docs.")
	for _, section := range docs.Sections() {
		var rows [][2]string
		for _, page := range section.Pages {
			rows = append(rows, [2]string{page.Name, page.Title})
		}
		h.entries(section.Title, rows)
	}
}

// wrap returns words in lines of so many columns. The first line begins with one text, the others with another.
func wrap(words, first, rest string, columns int) string {
	var out strings.Builder
	line, empty := first, true
	for word := range strings.FieldsSeq(words) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			out.WriteString(line + "\n")
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return out.String() + line + "\n"
}
