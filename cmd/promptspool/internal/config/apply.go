package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/words"
)

// The known facts about the settings' values are kept with the app that runs, which is
// made again for each evaluation.
const (
	originsKey   = "origins"    // map[string]string: where the value of each setting was set
	rulesKey     = "rules"      // []placedRule
	argsKey      = "args"       // []string: the command line
	fileFirstKey = "file first" // present: the file comes before the command line and variables
)

// AppMaker makes the command table of the program, for an evaluation.
type AppMaker func(stdout, stderr io.Writer) *cli.App

// Apply gives the settings that neither the command line nor a variable sets the values of the configuration file.
// It keeps where each was set, also for a command that takes no file.
func Apply(c *cli.Context) error {
	origins := map[string]string{}
	c.App.Metadata[originsKey] = origins
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; name != "help" && c.IsSet(name) {
			origins[name] = originOf(c, f)
		}
	}

	path := c.String("config")
	if path == "" {
		return nil
	}
	file, err := ReadFile(c.App, path)
	if err != nil {
		return UsageError{CommandName(c) + " ", err.Error()}
	}

	// The section of the other role is checked as well, and else ignored.
	section := file.Sections[c.Command.Name]
	c.App.Metadata[rulesKey] = section.redact
	_, fileFirst := c.App.Metadata[fileFirstKey]
	for _, s := range section.settings {
		// An empty variable is often set by a template that means nothing by it: the file
		// counts.
		if origins[s.name] != "" && !fileFirst && hasValue(c, s.name) {
			continue
		}

		origins[s.name] = fmt.Sprintf("%s:%d", path, s.line)
		for _, value := range s.values {
			if err := c.Set(s.name, besideFile(path, s.name, value)); err != nil {
				return Usagef(c, "%s: %s: %q is not true or false", origins[s.name], s.name, value)
			}
		}
	}
	return nil
}

// besideFile resolves the name of a file in a configuration file: a relative one is beside that file, wherever the
// process was started. Other settings are returned as they are.
func besideFile(path, name, value string) string {
	isFile := strings.HasSuffix(name, "-file") || name == "prices"
	if !isFile || value == "" || filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(filepath.Dir(path), value)
}

// hasValue reports whether a setting that is set has a value: a variable that is set to nothing means the default.
func hasValue(c *cli.Context, name string) bool {
	return c.String(name) != "" || c.Bool(name) || len(Read(c).List(name)) > 0
}

// originOf returns the flag or the variable by which a setting was set.
//
// The library does not tell which. Where both have the same value it does not matter.
func originOf(c *cli.Context, f cli.Flag) string {
	name, variable := f.Names()[0], f.(cli.DocGenerationFlag).GetEnvVars()[0]
	// A flag goes before its variable: the variable's own value shows that it counted.
	value, set := os.LookupEnv(variable)
	if set && (c.String(name) == value || f.IsSet() && c.String(name) == "") {
		return variable
	}
	return "--" + name
}

// Misspelt returns the variables that no command reads, each with one of this command that is close to it.
//
// Others are left alone: for a service of that name, Kubernetes sets PROMPTSPOOL_SERVICE_HOST.
func (r *Reader) Misspelt() map[string]string {
	const prefix = "PROMPTSPOOL_"
	var own []string
	for _, f := range r.c.Command.Flags {
		for _, variable := range f.(cli.DocGenerationFlag).GetEnvVars() {
			own = append(own, strings.TrimPrefix(variable, prefix))
		}
	}

	meant := map[string]string{}
	for _, line := range os.Environ() {
		variable, _, _ := strings.Cut(line, "=")
		name, ours := strings.CutPrefix(variable, prefix)
		if near := words.Closest(name, own); ours && len(near) > 0 && !isRead(r.c.App.Commands, variable) {
			meant[variable] = prefix + near[0]
		}
	}
	return meant
}

// isRead reports whether one of some commands reads a variable.
func isRead(commands []*cli.Command, variable string) bool {
	return slices.ContainsFunc(commands, func(c *cli.Command) bool {
		return isRead(c.Subcommands, variable) || slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
			return slices.Contains(f.(cli.DocGenerationFlag).GetEnvVars(), variable)
		})
	})
}

// origin is where a setting was set: --data, PROMPTSPOOL_DATA or FILE:LINE; "" when it has its default.
func origin(c *cli.Context, name string) string {
	origins, _ := c.App.Metadata[originsKey].(map[string]string)
	return origins[name]
}

// Remember keeps the command line that an app is about to run, so that it can be evaluated again.
func Remember(app *cli.App, args []string) { app.Metadata[argsKey] = args }

// Evaluate reads a command line again, with its configuration file as it is now.
//
// It calls see where the command would begin to run. Everything happens in a new app, so a file with a fault changes
// nothing.
func Evaluate(newApp AppMaker, args []string, see func(*cli.Context) error) error {
	return evaluateWith(newApp, args, map[string]any{}, see)
}

// EvaluateFile is evaluate for a role's section of a configuration file alone, as if nothing came before the file.
func EvaluateFile(newApp AppMaker, role, path string, see func(*cli.Context) error) error {
	args := []string{"promptspool", role, "--config", path}
	return evaluateWith(newApp, args, map[string]any{fileFirstKey: true}, see)
}

func evaluateWith(newApp AppMaker, args []string, metadata map[string]any, see func(*cli.Context) error) error {
	// It prints into nothing: a reload must not write to the output of the process.
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{})
	for key, value := range metadata {
		app.Metadata[key] = value
	}
	Remember(app, args)
	for _, command := range app.Commands {
		if command.Name == args[1] {
			command.Action = see
		}
	}
	return app.Run(Permute(app, args))
}
