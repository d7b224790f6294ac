package completion

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

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
