package config

import (
	"cmp"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"
)

// Variables are the environment variables of a flag: --spool-bytes-max has PROMPTSPOOL_SPOOL_BYTES_MAX.
func Variables(flag string) []string {
	return []string{"PROMPTSPOOL_" + strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(flag))}
}

// TextFlag is a flag with one value. A word in backticks in usage stands for the value.
//
// The library sees only strings: a reader checks sizes, durations and counts, so that a wrong value in a configuration
// file is reported like one on the command line.
func TextFlag(name, value, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Value: value, DefaultText: value, Usage: usage, EnvVars: Variables(name)}
}

// repeatedFlag is a flag with several values. The library would show it twice in the help.
type repeatedFlag struct{ *cli.StringSliceFlag }

// IsSliceFlag reports whether the library shows the flag as one that may be repeated.
func (f repeatedFlag) IsSliceFlag() bool { return false }

// String is the flag's line in the help.
func (f repeatedFlag) String() string { return cli.FlagStringer(f) }

// ListFlag is a flag that may be given several times.
func ListFlag(name, usage string) cli.Flag {
	return repeatedFlag{&cli.StringSliceFlag{Name: name, Usage: usage, EnvVars: Variables(name)}}
}

// SwitchFlag is a flag that is given or not.
func SwitchFlag(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, EnvVars: Variables(name), DisableDefaultText: true}
}

// choiceFlag is a flag whose value is one of some words.
type choiceFlag struct {
	*cli.StringFlag
	words []string
}

// ChoiceFlag is a flag whose value is one of some words, which the help names after usage. Read it with OneOf.
func ChoiceFlag(name, value, usage string, words ...string) cli.Flag {
	usage += ": " + english.WordSeries(words, "or")
	return choiceFlag{TextFlag(name, value, usage).(*cli.StringFlag), words}
}

// AnyName at the end of a word of a ChoiceFlag stands for any text.
const AnyName = "NAME"

// Words returns the words of a ChoiceFlag; nil for any other flag.
func Words(f cli.Flag) []string {
	choice, _ := f.(choiceFlag)
	return choice.words
}

// shared are the flags that mean the same in every command, so that one variable is enough for all.
var shared = regexp.MustCompile(`^(data|key|context|output|json|jq|utc|(url|upstream)(-.+)?)$`)

// OfCommand puts the command's name into the variables of those flags that are its own.
//
// Otherwise the PROMPTSPOOL_NAME of a pod would narrow every list that is printed inside it.
func OfCommand(command string, flags []cli.Flag) {
	for _, f := range flags {
		if name := f.Names()[0]; !shared.MatchString(name) {
			variables, _ := parts(f)
			*variables = Variables(command + " " + name)
		}
	}
}

// Group puts flags under a heading in the help.
func Group(heading string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		_, category := parts(f)
		*category = heading
	}
	return flags
}

// parts returns what of a flag depends on the commands that have it.
func parts(f cli.Flag) (variables *[]string, category *string) {
	switch f := f.(type) {
	case *cli.BoolFlag:
		return &f.EnvVars, &f.Category
	case repeatedFlag:
		return &f.EnvVars, &f.Category
	case choiceFlag:
		return &f.EnvVars, &f.Category
	}
	text := f.(*cli.StringFlag)
	return &text.EnvVars, &text.Category
}

// SecretFlags are a flag whose value is a secret, and one for a file that holds it.
func SecretFlags(name, usage string) []cli.Flag {
	return []cli.Flag{
		TextFlag(name, "", usage+". Give it by its variable: others can read a command line"),
		TextFlag(name+"-file", "", "read --"+name+" from this `file`"),
	}
}

// The forms of what a command prints: for people, and for programs.
const (
	FormTable  = "table"
	FormJSON   = "json"
	FormNDJSON = "ndjson" // a line for each item
	FormCSV    = "csv"
)

// OutputFlags choose between a table for people and the forms for programs.
//
// A wrong value is rejected before the command does anything.
func OutputFlags() []cli.Flag {
	f := ChoiceFlag("output", FormTable, "the `form` of what is printed", FormTable, FormJSON, FormNDJSON, FormCSV)
	f.(choiceFlag).Aliases = []string{"o"}
	f.(choiceFlag).Action = func(c *cli.Context, _ string) error {
		r := Read(c)
		r.OneOf("output")
		return r.Err()
	}

	jq := TextFlag("jq", "", "what this jq `expression` makes of the JSON, a line for each value")
	jq.(*cli.StringFlag).Action = func(c *cli.Context, _ string) error {
		r := Read(c)
		r.Expression()
		return r.Err()
	}
	json := TextFlag("json", "", "JSON with only these `fields`, with commas between them")
	return Group("Output", f, json, jq)
}

// ShowingFlags are OutputFlags, and one for the zone of what is printed.
func ShowingFlags() []cli.Flag {
	return append(Group("Output", SwitchFlag("utc", "times are in UTC, instead of this machine's time zone")),
		OutputFlags()...)
}

// ColumnsFlag chooses the columns of the list that a command prints.
func ColumnsFlag() cli.Flag {
	return Group("Output", TextFlag("columns", "", "only these columns, in this order: `names` with commas between "+
		"them, as the heading of a table or a CSV has them, or as JSON does"))[0]
}

// NameFlag is the name of the process, which is in every event that it accepts.
func NameFlag() cli.Flag {
	host, _ := os.Hostname()
	return TextFlag("name", cmp.Or(host, "unnamed"), "this process's `name`, which is in every event that it accepts")
}

// flagOf finds a flag of the command that runs.
func flagOf(c *cli.Context, name string) cli.DocGenerationFlag {
	i := slices.IndexFunc(c.Command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	return c.Command.Flags[i].(cli.DocGenerationFlag)
}

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
