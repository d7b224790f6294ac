package config

import (
	"cmp"
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
