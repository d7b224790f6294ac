// Package config reads the settings of commands and of both roles.
//
// A setting is a flag, an environment variable, or a line of the configuration file, in this
// order. A Reader reads the values and collects every fault, so that a person sees all of them
// together. A Reloader reads the whole command line again while a process runs, and applies it
// completely or not at all.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/itchyny/gojq"
	"github.com/urfave/cli/v2"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/logging"
)

// Reader reads the settings of the command that runs.
//
// It collects every fault, so that a person sees all of them together: read everything, then call Err.
type Reader struct {
	c      *cli.Context
	faults []error
}

// Read returns a reader of the command's settings.
func Read(c *cli.Context) *Reader { return &Reader{c: c} }

// Note adds a fault; nil is none.
func (r *Reader) Note(err error) {
	if err != nil {
		r.faults = append(r.faults, err)
	}
}

// Reject notes that the value of a setting is wrong, and why.
func (r *Reader) Reject(name, reason string) { r.RejectValue(name, r.Text(name), reason) }

// RejectValue is Reject for a part of the setting's value.
func (r *Reader) RejectValue(name, value, reason string) {
	r.Note(WrongValue(r.c, name, value, reason))
}

// Sound reports whether no fault was noted so far.
func (r *Reader) Sound() bool { return len(r.faults) == 0 }

// Err returns all faults as one usage error, nil if there is none.
func (r *Reader) Err() error {
	if r.Sound() {
		return nil
	}
	return Usagef(r.c, "%v", errors.Join(r.faults...))
}

// Text returns a setting's value.
//
// A setting that is set to nothing, as variables often are, has its default.
func (r *Reader) Text(name string) string {
	return cmp.Or(r.c.String(name), flagOf(r.c, name).GetDefaultText())
}

// OneOf returns the value of a ChoiceFlag, which must be one of its words; "" if it is absent.
func (r *Reader) OneOf(name string) string {
	text, all := r.Text(name), Words(flagOf(r.c, name))
	fits := func(word string) bool {
		start, open := strings.CutSuffix(word, AnyName)
		return word == text || open && text != start && strings.HasPrefix(text, start)
	}
	if text != "" && !slices.ContainsFunc(all, fits) {
		r.Reject(name, "is not one of "+strings.Join(all, ", ")+words.DidYouMean(text, all))
	}
	return text
}

// List returns the values of a setting that may be repeated, without the empty ones.
func (r *Reader) List(name string) []string {
	return slices.DeleteFunc(slices.Clone(r.c.StringSlice(name)), func(s string) bool { return s == "" })
}

// Given reports whether a switch is on.
func (r *Reader) Given(name string) bool { return r.c.Bool(name) }

// Zone returns the zone of what a command of ShowingFlags reads and prints.
func (r *Reader) Zone() *time.Location {
	if r.c.Bool("utc") {
		return time.UTC
	}
	return time.Local
}

// Required is Text for a setting that must be given.
func (r *Reader) Required(name string) string {
	value := r.Text(name)

	// `config check` looks at the file alone, and a file need not hold every setting.
	if _, checking := r.c.App.Metadata[fileFirstKey]; value == "" && !checking {
		f := flagOf(r.c, name)
		usage := strings.ReplaceAll(f.GetUsage(), "`", "")
		r.Note(Usagef(r.c, "--%s (or %s) is missing: %s", name, f.GetEnvVars()[0], usage))
	}
	return value
}

// Size returns a number of bytes, of at least 1: 64MiB, 8GB, or a plain number.
func (r *Reader) Size(name string) int64 {
	n, err := humanize.ParseBytes(r.Text(name))
	if err != nil || n == 0 || n > math.MaxInt64 {
		r.Reject(name, "is not a size such as 64MiB or 8GiB")
		return 0
	}
	return int64(n)
}

// SizeOr is Size for a setting that may be left out.
func (r *Reader) SizeOr(name string, fallback int64) int64 {
	if r.Text(name) == "" {
		return fallback
	}
	return r.Size(name)
}

// Duration returns a time of at least 0: 30s, 1h30m, 90d.
func (r *Reader) Duration(name string) time.Duration {
	d, ok := filterline.ParseDuration(r.Text(name))
	if !ok {
		r.Reject(name, "is not a duration such as 30s or 90d")
		return 0
	}
	return d
}

// Count returns an integer from 1 to most; 0 if the setting has no value.
func (r *Reader) Count(name string, most int) int {
	value := r.Text(name)
	if value == "" {
		return 0
	}

	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		r.Reject(name, "is not a number from 1 to "+strconv.Itoa(most))
		return 0
	}
	return n
}

// Hosts returns the host names of a list, which a variable separates by commas.
func (r *Reader) Hosts(name string) []string {
	var hosts []string
	// The library does not split variables here, because a tag may hold a comma.
	for _, h := range strings.Split(strings.Join(r.List(name), ","), ",") {
		h = strings.ToLower(strings.TrimSpace(h))
		if h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Name returns the value of NameFlag, which is bounded because every event carries it.
func (r *Reader) Name() string {
	name := r.Text("name")
	if len(name) > wire.SidecarBytesMax || !utf8.ValidString(name) {
		r.Reject("name", fmt.Sprintf("must be a text of 1 to %d bytes", wire.SidecarBytesMax))
		return ""
	}
	return name
}

// Form returns the form of what is printed: --json and --jq need JSON, whatever --output says.
func (r *Reader) Form() string {
	form := cmp.Or(r.c.String("output"), FormTable)
	if form != FormNDJSON && r.c.String("json")+r.c.String("jq") != "" {
		return FormJSON
	}
	return form
}

// Expression returns the expression of --jq; nil without one.
func (r *Reader) Expression() *gojq.Code {
	text := r.c.String("jq")
	if text == "" {
		return nil
	}

	var code *gojq.Code
	query, err := gojq.Parse(text)
	if err == nil {
		code, err = gojq.Compile(query)
	}
	if err != nil {
		r.Reject("jq", "is not a jq expression: "+err.Error())
	}
	return code
}

// AsData reports whether flags ask for a form for programs rather than for a table.
func (r *Reader) AsData() bool { return r.Form() != FormTable }

// Columns returns the names of --json or --columns; nil for all columns.
func (r *Reader) Columns() []string {
	return strings.FieldsFunc(cmp.Or(r.c.String("json"), r.c.String("columns")), func(c rune) bool { return c == ',' })
}

// Secret returns the value of SecretFlags, from whichever of the two is given; "" if neither is.
func (r *Reader) Secret(name string) wire.Secret {
	value, path := r.Text(name), r.Text(name+"-file")
	switch {
	case path == "":
		return wire.Secret(value)
	case value != "":
		both := []any{SettingName(r.c, name), SettingName(r.c, name+"-file")}
		r.Note(Usagef(r.c, "%s and %s are both given; leave one out", both...))
		return ""
	}

	// Read here and not when it is needed: a file that is missing must fail the start.
	content, err := os.ReadFile(path)
	if err != nil {
		r.Note(Usagef(r.c, "%s: %v", SettingName(r.c, name+"-file"), err))
		return ""
	}
	// Some editors begin a file with a mark.
	value = strings.TrimSpace(strings.TrimPrefix(string(content), "\ufeff"))
	isQuoted := len(value) > 1 && value[0] == value[len(value)-1] && strings.Contains("\"'`", value[:1])
	if value == "" || strings.ContainsAny(value, "\r\n") || isQuoted {
		r.Note(Usagef(r.c, "%s: %s must hold one line, without quotes", SettingName(r.c, name+"-file"), path))
		return ""
	}
	return wire.Secret(value)
}

// Argument returns the one argument of the command. wanted describes it in the error if it is missing.
func (r *Reader) Argument(wanted string) string {
	value, err := Argument(r.c, wanted)
	r.Note(err)
	return value
}

// SettingName names a setting in a message, with the place where it was set.
//
// That is a line of a file, or else the setting's flag and variable.
func SettingName(c *cli.Context, name string) string {
	from := origin(c, name)
	if from == "" || from == "--"+name || from == Variables(name)[0] {
		return fmt.Sprintf("--%s (or %s)", name, flagOf(c, name).GetEnvVars()[0])
	}
	return from + ": " + name
}

// WrongValue is the usage error of a setting whose value is wrong.
func WrongValue(c *cli.Context, name, value, reason string) error {
	return Usagef(c, "%s: %q %s", SettingName(c, name), value, reason)
}

// UsageError is a command line that cannot mean anything. The process exits with code 2.
type UsageError struct {
	command string // in full, with a blank after it; empty for promptspool itself
	message string
}

// Error returns the message without the command.
func (e UsageError) Error() string { return e.message }

// Help returns the command line that shows how the command is used.
func (e UsageError) Help() string { return "promptspool " + e.command + "--help" }

// Usagef returns a usage error of the command that runs.
func Usagef(c *cli.Context, format string, args ...any) error {
	e := UsageError{message: fmt.Sprintf(format, args...)}
	if command := CommandName(c); command != "" {
		e.command = command + " "
	}
	return e
}

// CommandName returns the command that runs, in full ("keys create"); "" for promptspool itself.
func CommandName(c *cli.Context) string {
	_, command, _ := strings.Cut(c.Command.HelpName, " ")
	return command
}

// LogFlags set what a command that runs until it is stopped logs, and how.
func LogFlags(level string) []cli.Flag {
	return Group("Log",
		ChoiceFlag("log-level", level, "minimum log `level` on stderr", "debug", "info", "warn", "error"),
		ChoiceFlag("log-format", "text", "the `form` of the log", "text", "json"),
	)
}

// Logger returns the logger that LogFlags describe. Its level may be changed while it is in use.
func (r *Reader) Logger() (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	// A wrong level is noted.
	_ = level.UnmarshalText([]byte(r.OneOf("log-level")))

	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(r.c.App.ErrWriter, options)
	if r.OneOf("log-format") == "json" {
		handler = slog.NewJSONHandler(r.c.App.ErrWriter, options)
	}
	// In front of the handler, so that repetitions cost no formatting.
	return slog.New(logging.NewThin(handler)), level
}

// ToolLogger logs the warnings and errors of a command that ends by itself, on stderr.
func ToolLogger(c *cli.Context) *slog.Logger {
	return slog.New(slog.NewTextHandler(c.App.ErrWriter, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
