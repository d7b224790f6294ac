package main

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"
)

// env is the variable of a flag: --spool-bytes-max is PROMPTSPOOL_SPOOL_BYTES_MAX.
func env(flag string) []string {
	return []string{"PROMPTSPOOL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

func stringFlag(name, value, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, EnvVars: env(name)}
}

func listFlag(name, usage string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: usage, EnvVars: env(name)}
}

func countFlag(name string, value int, usage string) cli.Flag {
	return &cli.IntFlag{Name: name, Value: value, Usage: usage, EnvVars: env(name)}
}

// text is a string flag's value. A variable that is set to nothing means the default: the library takes it as given.
func text(c *cli.Context, name string) string {
	if v := c.String(name); v != "" {
		return v
	}
	for _, f := range c.Command.Flags {
		if f, ok := f.(*cli.StringFlag); ok && f.Name == name {
			return f.GetDefaultText()
		}
	}
	return ""
}

// need is text for a flag that must be given.
func need(c *cli.Context, name string) (string, error) {
	if v := c.String(name); v != "" {
		return v, nil
	}
	return "", usagef(c, "--%s (or %s) is missing", name, env(name)[0])
}

// size reads bytes with a unit: 64MiB, 8GB, or a plain number.
func size(c *cli.Context, name string) (int64, error) {
	n, err := humanize.ParseBytes(text(c, name))
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, usagef(c, "--%s: %q is not a size such as 64MiB or 8GiB", name, c.String(name))
	}
	return int64(n), nil
}

func duration(c *cli.Context, name string) (time.Duration, error) {
	d, err := time.ParseDuration(text(c, name))
	if err != nil || d < 0 {
		return 0, usagef(c, "--%s: %q is not a duration such as 30s", name, c.String(name))
	}
	return d, nil
}

// logFlags are those of the commands that run until they are stopped.
func logFlags(level string) []cli.Flag {
	return []cli.Flag{
		stringFlag("log-level", level, "what is logged to stderr: debug, info, warn or error"),
		stringFlag("log-format", "text", "how: text or json"),
	}
}

func logger(c *cli.Context) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(text(c, "log-level"))); err != nil {
		return nil, usagef(c, "--log-level: %q is not one of debug, info, warn, error", c.String("log-level"))
	}
	o := &slog.HandlerOptions{Level: level}
	switch text(c, "log-format") {
	case "text":
		return slog.New(slog.NewTextHandler(c.App.ErrWriter, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(c.App.ErrWriter, o)), nil
	}
	return nil, usagef(c, "--log-format: %q is not one of text, json", c.String("log-format"))
}

// nameFlag is who accepts events; it stands in each of them.
func nameFlag() cli.Flag {
	host, _ := os.Hostname()
	return stringFlag("name", host, "this process's name, which stands in every event that it accepts")
}

// permute moves flags in front of arguments, so that `requests get ID -o json` works: the library stops reading flags at the first
// argument.
func permute(app *cli.App, args []string) []string {
	commands, flags := app.Commands, []cli.Flag(nil)
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
	out, rest := slices.Clone(args[:i]), []string(nil)
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

// takesValue says whether the next word belongs to a flag.
func takesValue(flags []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			_, isBool := f.(*cli.BoolFlag)
			return !isBool
		}
	}
	return false
}

// hostsOf reads a list of host names.
func hostsOf(c *cli.Context, name string) []string {
	var hosts []string
	for _, h := range c.StringSlice(name) {
		if h = strings.ToLower(strings.TrimSpace(h)); h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// listenFlags are the two listeners of a role.
func listenFlags(api, ops string) []cli.Flag {
	return []cli.Flag{
		stringFlag("listen", api, fmt.Sprintf("where the API listens: host:port (default %s) or unix:/path", api)),
		stringFlag("ops-listen", ops, "where metrics and probes are served: host:port"),
	}
}
