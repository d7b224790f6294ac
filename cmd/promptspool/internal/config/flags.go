package config

import (
	"cmp"
	"os"
	"slices"
	"strings"

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
	return &cli.BoolFlag{Name: name, Usage: usage, EnvVars: Variables(name)}
}

// OfCommand puts the command's name into the variables of flags.
//
// Otherwise the PROMPTSPOOL_NAME of a pod would narrow every list that is printed inside it.
func OfCommand(command string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *cli.StringFlag:
			f.EnvVars = Variables(command + " " + f.Name)
		case *cli.BoolFlag:
			f.EnvVars = Variables(command + " " + f.Name)
		case repeatedFlag:
			f.EnvVars = Variables(command + " " + f.Name)
		}
	}
	return flags
}

// SecretFlags are a flag whose value is a secret, and one for a file that holds it.
func SecretFlags(name, usage string) []cli.Flag {
	return []cli.Flag{
		TextFlag(name, "", usage+". Give it by its variable: others can read a command line"),
		TextFlag(name+"-file", "", "read --"+name+" from this `file`"),
	}
}

// OutputFlag chooses between a table for people and JSON for programs.
//
// A wrong value is rejected before the command does anything.
func OutputFlag() cli.Flag {
	return &cli.StringFlag{
		Name:        "output",
		Aliases:     []string{"o"},
		Value:       "table",
		DefaultText: "table",
		Usage:       "the `form` of what is printed: table or json",
		EnvVars:     Variables("output"),
		Action: func(c *cli.Context, form string) error {
			if !slices.Contains([]string{"", "table", "json"}, form) {
				return WrongValue(c, "output", form, "is not one of table, json")
			}
			return nil
		},
	}
}

// ShowingFlags are OutputFlag, and one for the zone of what is printed.
func ShowingFlags() []cli.Flag {
	return []cli.Flag{
		OutputFlag(),
		SwitchFlag("utc", "times are in UTC, instead of this machine's time zone"),
	}
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
