package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

// env is the variable of a flag: --spool-bytes-max is PROMPTSPOOL_SPOOL_BYTES_MAX.
func env(flag string) []string {
	return []string{"PROMPTSPOOL_" + strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(flag))}
}

// stringFlag is any flag with one value; size, duration and count read what is no text. A word in backticks in usage
// stands for the value.
func stringFlag(name, value, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Value: value, DefaultText: value, Usage: usage, EnvVars: env(name)}
}

// list is a flag that may be repeated. The library would show it twice.
type list struct{ *cli.StringSliceFlag }

func (l list) IsSliceFlag() bool { return false }
func (l list) String() string    { return cli.FlagStringer(l) }

func listFlag(name, usage string) cli.Flag {
	return list{&cli.StringSliceFlag{Name: name, Usage: usage, EnvVars: env(name)}}
}

// own gives flags variables with their command's name in it: the PROMPTSPOOL_NAME of a pod must not narrow the lists that
// somebody looks at inside it.
func own(command string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *cli.StringFlag:
			f.EnvVars = env(command + " " + f.Name)
		case list:
			f.EnvVars = env(command + " " + f.Name)
		}
	}
	return flags
}

// flag finds a flag of the command that runs.
func flag(c *cli.Context, name string) cli.DocGenerationFlag {
	i := slices.IndexFunc(c.Command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	return c.Command.Flags[i].(cli.DocGenerationFlag)
}

// text is a flag's value. One that is set to nothing, as variables often are, means the default.
func text(c *cli.Context, name string) string {
	return cmp.Or(c.String(name), flag(c, name).GetDefaultText())
}

// texts are the values of a flag that may be repeated, less those that are empty.
func texts(c *cli.Context, name string) []string {
	return slices.DeleteFunc(slices.Clone(c.StringSlice(name)), func(s string) bool { return s == "" })
}

// need is text for a flag that must be given.
func need(c *cli.Context, name string) (string, error) {
	if v := text(c, name); v != "" {
		return v, nil
	}
	f := flag(c, name)
	return "", usagef(c, "--%s (or %s) is missing: %s", name, f.GetEnvVars()[0], strings.ReplaceAll(f.GetUsage(), "`", ""))
}

// wrong says what is wrong with a flag's value.
func wrong(c *cli.Context, name, value, what string) error {
	return usagef(c, "%s: %q %s", where(c, name), value, what)
}

// size reads bytes with a unit: 64MiB, 8GB, or a plain number; at least 1.
func size(c *cli.Context, name string) (int64, error) {
	n, err := humanize.ParseBytes(text(c, name))
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, wrong(c, name, text(c, name), "is not a size such as 64MiB or 8GiB")
	}
	return int64(n), nil
}

// duration reads Go's form of a time: 30s, 1h30m; at least 0.
func duration(c *cli.Context, name string) (time.Duration, error) {
	d, err := time.ParseDuration(text(c, name))
	if err != nil || d < 0 {
		return 0, wrong(c, name, text(c, name), "is not a duration such as 30s")
	}
	return d, nil
}

// count reads an integer from 1 to most; 0 if there is none.
func count(c *cli.Context, name string, most int) (int, error) {
	v := text(c, name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		return 0, wrong(c, name, v, "is not a number from 1 to "+strconv.Itoa(most))
	}
	return n, nil
}

// logFlags are those of the commands that run until they are stopped.
func logFlags(level string) []cli.Flag {
	return []cli.Flag{
		stringFlag("log-level", level, "the least `level` that is logged to stderr: debug, info, warn or error"),
		stringFlag("log-format", "text", "the `form` of the log: text or json"),
	}
}

// nameFlag is who accepts events; it stands in each of them.
func nameFlag() cli.Flag {
	host, _ := os.Hostname()
	return stringFlag("name", cmp.Or(host, "unnamed"), "this process's `name`, which stands in every event that it accepts")
}

// nameBytesMax bounds --name: it travels in every event.
const nameBytesMax = wire.SidecarBytesMax

func nameOf(c *cli.Context) (string, error) {
	name := text(c, "name")
	if len(name) > nameBytesMax || !utf8.ValidString(name) {
		return "", wrong(c, "name", name, fmt.Sprintf("is no text of 1 to %d bytes", nameBytesMax))
	}
	return name, nil
}

// hostsOf reads a list of host names, which a variable separates by commas.
func hostsOf(c *cli.Context, name string) []string {
	var hosts []string
	for _, h := range strings.Split(strings.Join(texts(c, name), ","), ",") {
		if h = strings.ToLower(strings.TrimSpace(h)); h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// secretFlags are a flag whose value is a secret, and one for a file that holds it.
func secretFlags(name, usage string) []cli.Flag {
	return []cli.Flag{
		stringFlag(name, "", usage+". Give it by its variable: others can read a command line"),
		stringFlag(name+"-file", "", "a `file` that holds the --"+name+", instead"),
	}
}

// secret reads what secretFlags are given; "" if neither is.
func secret(c *cli.Context, name string) (wire.Secret, error) {
	value, path := text(c, name), text(c, name+"-file")
	switch {
	case path == "":
		return wire.Secret(value), nil
	case value != "":
		return "", usagef(c, "%s and %s are both given; leave one out", where(c, name), where(c, name+"-file"))
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", usagef(c, "%s: %v", where(c, name+"-file"), err)
	}
	value = strings.TrimSpace(string(content))
	if value == "" || strings.ContainsAny(value, "\r\n") {
		return "", usagef(c, "%s: %s must hold one line", where(c, name+"-file"), path)
	}
	return wire.Secret(value), nil
}
