// Package filter has the flags that say which records a command is about.
package filter

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
)

// Flags select the records of a command: a line, and flags for its most usual conditions.
func Flags() []cli.Flag {
	return config.Group("Filter",
		config.TextFlag("filter", "", "only what this `line` finds, such as "+
			"'status:error latency:>2s since:yesterday'; `promptspool docs filter` explains it"),

		config.ListFlag("tag", "only with this `tag`; may be repeated"),
		config.ListFlag("metadata", "only with this `key=value`; may be repeated"),
		config.TextFlag("session", "", "only of this session, by its `id`"),
		config.TextFlag("user", "", "only of this user, by the `id` that your app sent"),
		config.TextFlag("model", "", "only of this `model`"),
		config.TextFlag("template", "", "only of this template: a `name`, name@version or name@label"),
		config.ChoiceFlag("status", "", "only with this `status`", "SUCCESS", "WARNING", "ERROR"),
		config.TextFlag("after", "", "only what started at this `time` or later: yesterday, 2026-11-21, "+
			"2026-11-21T18:00, 2h for two hours ago, and all else that --filter knows"),
		config.TextFlag("before", "", "only what started before this `time`"),
	)
}

// fields are the flags with one value, and how a line calls the field of each.
var fields = [][2]string{
	{"session", "session"}, {"user", "user"}, {"model", "model"}, {"template", "template"}, {"status", "status"},
	{"after", "since"}, {"before", "before"},
}

// Read reads Flags and returns the line that they make, and what it selects now.
func Read(v *config.Reader) (filterline.Line, *wire.Filter) {
	return read(v, filterline.Line.Compile)
}

// ReadRollup is Read for a command about sessions, traces or users.
func ReadRollup(v *config.Reader) (filterline.Line, filterline.Rollup) {
	return read(v, filterline.Line.CompileRollup)
}

func read[S any](
	v *config.Reader, compile func(filterline.Line, filterline.Clock) (S, error),
) (filterline.Line, S) {
	clock := filterline.Clock{Now: time.Now(), Zone: v.Zone()}
	parse := func(flag, text string) filterline.Line {
		line, err := filterline.Parse(text)
		if err == nil {
			_, err = compile(line, clock)
		}
		if err != nil {
			v.Reject(flag, wire.AsError(err).Fields[0].Reason)
		}
		return line
	}
	line := parse("filter", v.Text("filter"))

	// Each alone first, so that a fault names its flag.
	add := func(flag, value string, t filterline.Term) {
		if _, err := t.Compile(clock); err != nil {
			_, reason, _ := strings.Cut(wire.AsError(err).Fields[0].Reason, ": ")
			if rest, named := strings.CutPrefix(reason, t.Field.Name+" "); named {
				// The flag may have another name.
				reason = "it " + rest
			}
			v.RejectValue(flag, value, "is wrong: "+reason)
		}
		line.Terms = append(line.Terms, t)
	}
	for _, tag := range v.List("tag") {
		add("tag", tag, filterline.Where("tag", "", tag))
	}
	for _, pair := range v.List("metadata") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			v.RejectValue("metadata", pair, "is not key=value")
			continue
		}
		add("metadata", pair, filterline.Where("metadata", key, value))
	}
	for _, f := range fields {
		value := v.Text(f[0])
		if value == "" {
			continue
		}
		t := filterline.Where(f[1], "", value)
		// In a template, an @ has a meaning.
		t.Values[0].Quoted = f[0] != "template"
		add(f[0], value, t)
	}

	selection, err := compile(line, clock)
	if err != nil && v.Sound() {
		v.Reject("filter", wire.AsError(err).Fields[0].Reason)
	}

	return line, selection
}

// Zone names the zone of a command for the server, which knows nothing of this machine. It is ""
// for UTC.
func Zone(v *config.Reader) string {
	if v.Zone() == time.UTC {
		return ""
	}

	// As Go finds it: by TZ, else by a link that most systems have to a file that is named as the zone is.
	name, set := os.LookupEnv("TZ")
	if !set {
		link, _ := filepath.EvalSymlinks("/etc/localtime")
		_, name, _ = strings.Cut(filepath.ToSlash(link), "zoneinfo/")
	}
	name = strings.TrimPrefix(name, ":")
	if _, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
		return name
	}
	return time.Now().Format("-07:00")
}
