package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
)

// Where values come from is kept with the app that runs, which is made anew for each evaluation.
const (
	originsKey   = "origins"    // map[string]string: a setting's name to where its value stands
	rulesKey     = "rules"      // []placedRule
	argsKey      = "args"       // []string: the command line
	fileFirstKey = "file first" // set: the file is what is looked at, not what comes before it
)

// applyConfig gives the flags that neither the command line nor a variable sets the values of the configuration file.
func applyConfig(c *cli.Context) error {
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
	file, err := readConfig(path)
	if err != nil {
		return usageError{commandOf(c) + " ", err.Error()}
	}
	section := file.sections[c.Command.Name]
	c.App.Metadata[rulesKey] = section.redact
	_, fileFirst := c.App.Metadata[fileFirstKey]
	for _, s := range section.settings {
		if origins[s.name] != "" && !fileFirst && isGiven(c, s.name) {
			continue
		}
		origins[s.name] = fmt.Sprintf("%s:%d", path, s.line)
		for _, value := range s.values {
			if err := c.Set(s.name, value); err != nil {
				return usagef(c, "%s: %s: %q is not true or false", origins[s.name], s.name, value)
			}
		}
	}
	return nil
}

// isGiven says whether a flag that is set has a value: a variable that is set to nothing means the default.
func isGiven(c *cli.Context, name string) bool {
	return c.String(name) != "" || c.Bool(name) || len(texts(c, name)) > 0
}

// originOf says whether a flag was set on the command line or by its variable. The library does not tell; where both say the same
// it does not matter.
func originOf(c *cli.Context, f cli.Flag) string {
	name, variable := f.Names()[0], f.(cli.DocGenerationFlag).GetEnvVars()[0]
	value, set := os.LookupEnv(variable)
	if set && (c.String(name) == value || f.IsSet() && c.String(name) == "") {
		return variable
	}
	return "--" + name
}

// origin is where a setting's value stands: --data, PROMPTSPOOL_DATA or FILE:LINE; "" when it has its default.
func origin(c *cli.Context, name string) string {
	origins, _ := c.App.Metadata[originsKey].(map[string]string)
	return origins[name]
}

// evaluate reads a command line again, with its configuration file as it is now, and calls see where the command would begin
// to run. What it does is seen by nobody else, so a file with a fault leaves all as it was.
func evaluate(args []string, metadata map[string]any, see func(*cli.Context) error) error {
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{})
	for key, value := range metadata {
		app.Metadata[key] = value
	}
	app.Metadata[argsKey] = args
	for _, command := range app.Commands {
		if command.Name == args[1] {
			command.Action = see
		}
	}
	return app.Run(permute(app, args))
}

// isSecret says whether a setting's value must not be shown.
func isSecret(name string) bool {
	return strings.HasSuffix(name, "key") || strings.HasSuffix(name, "secret") || strings.HasSuffix(name, "password")
}
