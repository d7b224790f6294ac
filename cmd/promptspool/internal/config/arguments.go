package config

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Argument returns the one argument of a command. what describes it in the error if it is missing.
func Argument(c *cli.Context, what string) (string, error) {
	if c.NArg() != 1 || c.Args().First() == "" {
		return "", Usagef(c, "give %s", what)
	}
	return c.Args().First(), nil
}

// WithArgument makes the action of a command that takes one argument. what describes it in the error if it is missing.
func WithArgument(what string, action func(c *cli.Context, argument string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		argument, err := Argument(c, what)
		if err != nil {
			return err
		}
		return action(c, argument)
	}
}

// FileOrStdin opens the file that an argument names; - is stdin, whose size is not known and 0.
func FileOrStdin(path string) (file io.ReadCloser, size int64, err error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), 0, nil
	}

	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	file, err = os.Open(path)
	return file, info.Size(), err
}

// Command makes a command from its synopsis, such as "get REQUEST_ID": its name, and what arguments it takes.
func Command(synopsis, usage string, action cli.ActionFunc, flags ...[]cli.Flag) *cli.Command {
	name, arguments, takes := strings.Cut(synopsis, " ")
	c := &cli.Command{Name: name, ArgsUsage: arguments, Usage: usage, Action: action, Flags: slices.Concat(flags...)}
	if takes {
		return c
	}

	// The library would ignore arguments.
	c.Action = func(c *cli.Context) error {
		if c.Args().Present() {
			return Usagef(c, "unexpected argument %q: this command takes flags only", c.Args().First())
		}
		return action(c)
	}
	return c
}

// Commands makes a command that is a group of others.
func Commands(name, usage string, commands ...*cli.Command) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, Subcommands: commands}
}

// Permute brings a command line into the order that the library reads: the command, its flags, then its arguments.
//
// So flags may stand anywhere, `requests get ID -o json` or `-o json requests get ID`, and --help
// and the word help ask for the help of the command, wherever they are.
func Permute(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	l := line{command: &cli.Command{Subcommands: app.Commands}, words: args[:1:1]}
	if last := len(args) - 1; last > 1 && args[last] == completing {
		l.read(args[1 : last-1])
		return append(append(append(l.words, l.flags...), l.rest...), completing)
	}
	l.read(args[1:])

	switch {
	case l.help && (len(l.command.Subcommands) == 0 || len(l.rest) == 0):
		return append(l.words, "--help")
	case len(l.command.Subcommands) > 0:
		// To show the help of a group, or what is wrong.
		return append(append(l.words, l.rest...), l.flags...)
	case len(l.rest) > 0:
		l.flags = append(append(l.flags, "--"), l.rest...)
	}
	return append(l.words, l.flags...)
}

// completing is the last word of a command line whose last but one a shell asks to complete. The library takes it
// off, and calls what completes the command that the other words name.
const completing = "--generate-bash-completion"

// Typing is the word that a shell asks to complete.
type Typing struct {
	Lead string   // what precedes it in the same word, such as --model=
	Word string   // as far as it is typed
	Flag cli.Flag // whose value it is; nil for any other word
}

// TypingOf returns the word that a shell asks to complete.
func TypingOf(c *cli.Context) Typing {
	args := c.App.Metadata[argsKey].([]string)
	last, flags := len(args)-2, allFlags(c.Command)
	t := Typing{Word: args[last]}

	name, value, joined := strings.Cut(t.Word, "=")
	switch before := args[last-1]; {
	case strings.HasPrefix(before, "-") && takesValue(before, flags):
		t.Flag = flagNamed(strings.TrimLeft(before, "-"), flags)
	case joined && strings.HasPrefix(name, "-") && takesValue(name, flags):
		t = Typing{name + "=", value, flagNamed(strings.TrimLeft(name, "-"), flags)}
	}
	return t
}

// line is a command line, taken apart.
type line struct {
	command *cli.Command // the innermost one that is named

	words, flags, rest []string
	help               bool
}

func (l *line) read(args []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		next := l.command.Command(arg)

		switch {
		case arg == "--":
			l.rest = append(l.rest, args[i+1:]...)
			return
		case len(arg) > 1 && arg[0] == '-':
			flags := split(arg, allFlags(l.command))
			if takesValue(flags[0], allFlags(l.command)) && len(flags) == 1 && i+1 < len(args) {
				i++
				flags = append(flags, args[i])
			}
			l.help = l.help || flags[0] == "--help" || flags[0] == "-h"
			l.flags = append(l.flags, flags...)
		case next != nil && l.rest == nil:
			l.command, l.words = next, append(l.words, arg)
		case arg == "help" && l.rest == nil && l.command.ArgsUsage == "":
			l.help = true
		default:
			l.rest = append(l.rest, arg)
		}
	}
}

// asksJSON is a flag that asks for JSON in a command line, however it is written.
var asksJSON = regexp.MustCompile(` --?(o|output)[ =](nd)?json | --?(json|jq)[ =]`)

// WantsJSON reports whether a command line asks for JSON, even if it cannot be read otherwise.
func WantsJSON(args []string) bool {
	form := os.Getenv(Variables("output")[0])
	return asksJSON.MatchString(" --output=" + form + " " + strings.Join(args, " ") + " ")
}

// allFlags are a command's flags or, of a group, those of all its commands, because a flag may come before its command.
func allFlags(c *cli.Command) []cli.Flag {
	flags := c.Flags
	for _, sub := range c.Subcommands {
		flags = append(flags[:len(flags):len(flags)], allFlags(sub)...)
	}
	return flags
}

// split takes the value off a short flag that it is joined to: -ojson.
func split(arg string, flags []cli.Flag) []string {
	name := strings.TrimLeft(arg, "-")
	isShort := arg[1] != '-' && len(name) > 1 && name[1] != '=' && flagNamed(name, flags) == nil
	if isShort && takesValue(arg[:2], flags) {
		return []string{arg[:2], arg[2:]}
	}
	return []string{arg}
}

// takesValue reports whether the next word belongs to a flag.
func takesValue(arg string, flags []cli.Flag) bool {
	f := flagNamed(strings.TrimLeft(arg, "-"), flags)
	_, isSwitch := f.(*cli.BoolFlag)
	return f != nil && !isSwitch
}

func flagNamed(name string, flags []cli.Flag) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}
