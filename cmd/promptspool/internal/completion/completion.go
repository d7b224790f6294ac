// Package completion lets shells complete command lines: by commands and flags, and by values of the server
// that the command would ask.
package completion

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/dashboard/docs"
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// patience bounds the wait for values of a server: a person who pressed a key notices more.
const patience = 250 * time.Millisecond

// scripts ask the program for the completions of a word, one for each shell. Packages install them.
//
//go:embed promptspool.*
var scripts embed.FS

var shells = []string{"bash", "zsh", "fish", "powershell"}

// Command is `promptspool completion`: print the script for a shell.
func Command() *cli.Command {
	return config.Command("completion SHELL",
		"print the script with which a shell completes commands, flags and values",
		config.WithArgument("one of "+strings.Join(shells, ", "), printScript))
}

func printScript(c *cli.Context, shell string) error {
	script, err := scripts.ReadFile("promptspool." + shell)
	if err != nil {
		return config.Usagef(c, "there is no script for %q; give one of %s%s",
			shell, strings.Join(shells, ", "), words.DidYouMean(shell, shells))
	}
	_, err = c.App.Writer.Write(script)
	return err
}

// offer is a word that may be meant, and what it is.
type offer struct{ text, note string }

// files asks a shell for names of files.
var files = []offer{{text: ":files"}}

// Complete prints the words that may complete a command line, one a line, each with a note after a tab.
//
// It prints no errors: a server that does not answer has no values.
func Complete(c *cli.Context) {
	ctx, cancel := context.WithTimeout(c.Context, patience)
	defer cancel()
	c.Context = ctx

	typing := config.TypingOf(c)
	n := len(typing.Word)
	for _, o := range offersFor(c, typing) {
		begins := o == files[0] || len(o.text) >= n && strings.EqualFold(o.text[:n], typing.Word)
		if begins && print.Printable(o.text) == o.text {
			fmt.Fprintf(c.App.Writer, "%s%s\t%s\n", typing.Lead, o.text, print.Printable(o.note))
		}
	}
}

func offersFor(c *cli.Context, typing config.Typing) (all []offer) {
	switch {
	case typing.Flag != nil:
		return ofFlag(c, typing.Flag, typing.Word)
	case strings.HasPrefix(typing.Word, "-"):
		for _, f := range c.Command.Flags {
			usage := f.(cli.DocGenerationFlag).GetUsage()
			all = append(all, offer{"--" + f.Names()[0], strings.ReplaceAll(usage, "`", "")})
		}
		return all
	case len(c.Command.Subcommands) > 0:
		for _, sub := range c.Command.Subcommands {
			all = append(all, offer{sub.Name, sub.Usage})
		}
		return all
	}
	return ofArgument(c)
}

// valuesMax bounds how many values a server is asked for.
const valuesMax = 100

// ofFlag offers values of a flag.
func ofFlag(c *cli.Context, f cli.Flag, word string) []offer {
	usage, name := f.(cli.DocGenerationFlag).GetUsage(), f.Names()[0]
	key, value, hasKey := strings.Cut(word, "=")

	switch {
	case config.Words(f) != nil:
		return ofWords(c, config.Words(f), word)
	case strings.Contains(usage, "`file`"), strings.Contains(usage, "`folder`"):
		return files
	case name == "context":
		return contexts()
	case name == "scope":
		return plain(wire.ScopeWords, "", "")
	case name == "filter":
		return ofLine(c, word)
	case name == "metadata" && hasKey:
		return plain(existing(c, filterline.TypingAt("metadata."+key+":"+value)), key+"=", "")
	case name == "metadata":
		return plain(existing(c, filterline.TypingAt("metadata."+word)), "", "=")
	}
	// Flags of a filter are called as their fields of a line.
	t := filterline.TypingAt(name + ":" + word)
	if t.Field == filterline.OfMetadata() {
		return nil
	}
	return plain(existing(c, t), "", "")
}

// ofWords offers the words of a flag. One that ends in a name stands for those that a server has.
func ofWords(c *cli.Context, words []string, typed string) (all []offer) {
	for _, word := range words {
		start, open := strings.CutSuffix(word, config.AnyName)
		if !open {
			all = append(all, offer{text: word})
		} else if strings.HasPrefix(typed, start) || strings.HasPrefix(start, typed) {
			found := existing(c, filterline.TypingAt(start+strings.TrimPrefix(typed, start)))
			all = append(all, plain(found, start, "")...)
		}
	}
	return all
}

// plain offers words between two texts, without notes.
func plain(words []string, before, after string) (all []offer) {
	for _, word := range words {
		all = append(all, offer{text: before + word + after})
	}
	return all
}

// ofLine offers what continues a filter line.
func ofLine(c *cli.Context, line string) (all []offer) {
	t := filterline.TypingAt(line)
	for _, value := range existing(c, t) {
		text, _ := t.Offered(filterline.Value{Text: value, Quoted: true})
		if !t.Value {
			text = t.Field.CompletedPart(value)
		}
		all = append(all, offer{text: t.Kept + text})
	}
	if t.Field == nil && !t.Value && !t.IsText() {
		for _, f := range t.Keys(false) {
			all = append(all, offer{t.Kept + f.Completed(), f.Help})
		}
	}
	return all
}

// existing returns values of the field that is typed, or what may follow its dot, as the server has them.
func existing(c *cli.Context, t filterline.Typing) []string {
	if t.Field == nil {
		return nil
	}
	q := wire.SuggestQuery{Field: t.Field.PartField(), Prefix: t.Prefix, Limit: valuesMax, Budget: patience}
	if t.Value {
		q.Field, q.Key = t.Field.JSON, t.Part
	}
	if words := t.Words(); t.Value && words != nil {
		return words
	}

	cl, id, ok := server(c)
	if !ok {
		return nil
	}
	found, _ := cl.Suggest(c.Context, id, q)
	return found.Values
}

// server returns the server that the command would ask. ok is false if it asks none, or that is not known.
func server(c *cli.Context) (cl *client.Client, id wire.Identity, ok bool) {
	if !slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "context" }) {
		return nil, id, false
	}
	cl, id, err := config.Read(c).Remote()
	return cl, id, err == nil
}

// ofArgument offers what may be the next argument of a command, by what the command calls it.
func ofArgument(c *cli.Context) []offer {
	arguments := strings.Fields(c.Command.ArgsUsage + " -")
	switch argument := strings.Trim(arguments[min(c.NArg(), len(arguments)-1)], "[],."); argument {
	case "FILE", "DIR":
		return files
	case "SHELL":
		return plain(shells, "", "")
	case "PAGE":
		return plain(docs.Names(), "", "")
	case "NAME":
		if strings.Contains(c.Command.HelpName, " contexts ") {
			return contexts()
		}
		return templates(c)
	}

	return nil
}

// templates offers the names of templates.
func templates(c *cli.Context) (all []offer) {
	cl, id, ok := server(c)
	if !ok {
		return nil
	}
	list, _ := cl.List(c.Context, id, wire.TemplateListQuery{Page: 1, PerPage: wire.PageItemsMax})
	for _, t := range list.Items {
		all = append(all, offer{text: t.Name})
	}
	return all
}

// contexts offers the servers that login keeps.
func contexts() []offer {
	all, _ := config.ReadContexts()
	return plain(all.Names(), "", "")
}
