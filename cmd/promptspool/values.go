package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
)

// values reads the settings of a role and remembers every fault, so that all are told at once.
type values struct {
	c      *cli.Context
	faults []error
}

func (v *values) note(err error) {
	if err != nil {
		v.faults = append(v.faults, err)
	}
}

// err is all that was wrong, as one usage error.
func (v *values) err() error {
	if len(v.faults) == 0 {
		return nil
	}
	return usagef(v.c, "%v", errors.Join(v.faults...))
}

func (v *values) text(name string) string { return text(v.c, name) }

func (v *values) need(name string) string {
	value, err := need(v.c, name)
	if _, evaluating := v.c.App.Metadata[fileFirstKey]; !evaluating { // a file need not say all
		v.note(err)
	}
	return value
}

func (v *values) size(name string) int64 {
	n, err := size(v.c, name)
	v.note(err)
	return n
}

// sizeOr is size for a setting that may be left out.
func (v *values) sizeOr(name string, fallback int64) int64 {
	if v.text(name) == "" {
		return fallback
	}
	return v.size(name)
}

func (v *values) duration(name string) time.Duration {
	d, err := duration(v.c, name)
	v.note(err)
	return d
}

func (v *values) count(name string, most int) int {
	n, err := count(v.c, name, most)
	v.note(err)
	return n
}

// argument is argument for a command that also reads flags.
func (v *values) argument(what string) string {
	value, err := argument(v.c, what)
	v.note(err)
	return value
}

// asJSON reports whether --output says json, rather than table.
func (v *values) asJSON() bool {
	form := v.text("output")
	if form != "json" && form != "table" {
		v.wrong("output", "is not one of table, json")
	}

	return form == "json"
}

// remote makes the client that serverFlags describe, unless a fault was noted. The caller closes it.
func (v *values) remote() (*client.Client, wire.Identity) {
	if len(v.faults) > 0 {
		return nil, wire.Identity{}
	}

	cl, id, err := remote(v.c)
	v.note(err)
	return cl, id
}

func (v *values) name() string {
	name, err := nameOf(v.c)
	v.note(err)
	return name
}

// wrong notes a fault of a setting.
func (v *values) wrong(name, what string) { v.note(wrong(v.c, name, v.text(name), what)) }

func (v *values) logging() *logging {
	l, err := newLogging(v.c)
	v.note(err)
	return l
}

func (v *values) secret(name string) wire.Secret {
	value, err := secret(v.c, name)
	v.note(err)
	return value
}

// logging is a logger whose level may be changed while it runs.
type logging struct {
	*slog.Logger
	level *slog.LevelVar
}

func newLogging(c *cli.Context) (*logging, error) {
	var level slog.LevelVar
	if err := level.UnmarshalText([]byte(text(c, "log-level"))); err != nil {
		return nil, wrong(c, "log-level", text(c, "log-level"), "is not one of debug, info, warn, error")
	}
	o := &slog.HandlerOptions{Level: &level}
	switch form := text(c, "log-format"); form {
	case "text":
		return &logging{slog.New(newThin(slog.NewTextHandler(c.App.ErrWriter, o))), &level}, nil
	case "json":
		return &logging{slog.New(newThin(slog.NewJSONHandler(c.App.ErrWriter, o))), &level}, nil
	default:
		return nil, wrong(c, "log-format", form, "is not one of text, json")
	}
}

// where names a setting by the place where its value stands, or, when it has none, by its flag and variable.
func where(c *cli.Context, name string) string {
	from := origin(c, name)
	if from == "" || from == "--"+name || from == env(name)[0] {
		return fmt.Sprintf("--%s (or %s)", name, cmp.Or(flag(c, name).GetEnvVars()[0]))
	}
	return from + ": " + name
}
