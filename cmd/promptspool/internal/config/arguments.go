package config

import (
	"io"
	"os"
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

// FileOrStdin opens the file that an argument names; - is stdin.
func FileOrStdin(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}

	return os.Open(path)
}

// NoArguments makes a command reject arguments, which it would otherwise ignore.
func NoArguments(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Present() {
			return Usagef(c, "%q is too much: this command takes flags only", c.Args().First())
		}
		return action(c)
	}
}

// Permute moves flags in front of arguments, so that `requests get ID -o json` works.
//
// The library stops reading flags at the first argument.
func Permute(app *cli.App, args []string) []string {
	commands := app.Commands
	var flags []cli.Flag

	// The words of the command itself.
	i := 1
	for ; i < len(args); i++ {
		j := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(args[i]) })
		if j < 0 {
			break
		}
		commands, flags = commands[j].Subcommands, commands[j].Flags
	}
	if flags == nil {
		return args
	}

	out := slices.Clone(args[:i])
	var rest []string
	for ; i < len(args); i++ {
		switch {
		case args[i] == "--":
			rest = append(rest, args[i+1:]...)
			i = len(args)
		case len(args[i]) < 2 || args[i][0] != '-':
			rest = append(rest, args[i])
		default:
			out = append(out, args[i])
			if takesValue(flags, args[i]) && i+1 < len(args) {
				i++
				out = append(out, args[i])
			}
		}
	}

	if len(rest) > 0 {
		out = append(append(out, "--"), rest...)
	}
	return out
}

// takesValue reports whether the next word belongs to a flag.
func takesValue(flags []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			// A switch takes no value: the next word is an argument.
			_, isBool := f.(*cli.BoolFlag)
			return !isBool
		}
	}
	return false
}
