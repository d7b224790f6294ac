// Package filter has the flags that say which records a command is about.
package filter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
)

// Flags select the records of a command.
func Flags() []cli.Flag {
	return config.Group("Filter",
		config.TextFlag("filter", "", "only what this `line` finds, such as "+
			"'status:error latency:>2s since:yesterday'; `promptspool docs filter` explains it"),
		config.TextFlag("view", "", "only what the filter of the project's saved view with this `name` finds; "+
			"its own list has its order, too"),

		config.ListFlag("tag", "only with this `tag`; may be repeated"),
		config.ListFlag("metadata", "only with this `key=value`; may be repeated"),
		config.TextFlag("session", "", "only of this session, by its `id`"),
		config.TextFlag("user", "", "only of this user, by the `id` that your app sent"),
		config.TextFlag("environment", "", "only of this `environment`, such as production"),
		config.TextFlag("trace", "", "only of this trace, by its `id` or the beginning that lists show"),
		config.TextFlag("model", "", "only of this `model`"),
		config.TextFlag("provider", "", "only of this `provider`"),
		config.TextFlag("template", "", "only of this template: a `name`, name@version or name@label"),
		config.TextFlag("label", "", "only of the template's version with this `label` when it was sent"),
		config.ChoiceFlag("status", "", "only with this `status`", "SUCCESS", "WARNING", "ERROR"),
		config.TextFlag("score", "", "only with such a score: a `range`, such as '..20' or 'helpful:80..100'"),
		config.TextFlag("cost", "", "only with such a cost in dollars: a `range`, such as '0.01..'"),
		config.TextFlag("latency", "", "only with such a latency: a `range`, such as '2s..' or '500ms..1s'"),
		config.TextFlag("group", "", "only of this group, by its `id`"),
		config.TextFlag("sidecar", "", "only what this `sidecar` accepted"),
		config.TextFlag("text", "", "only with these `words` in the prompt or the response: "+
			"'refund \"30 days\" -test'"),
		config.TextFlag("after", "", "only what started at this `time` or later: yesterday, 2026-11-21, "+
			"2026-11-21T18:00, 2h for two hours ago, and all else that --filter knows"),
		config.TextFlag("before", "", "only what started before this `time`"),
	)
}

// fields are the flags with one value. Each is called as its field of a line, but for after, which is since.
var fields = []string{
	"session", "user", "environment", "trace", "model", "provider", "template", "label", "status", "score", "cost",
	"latency", "group", "sidecar", "after", "before",
}

// ranges are the flags that take one.
var ranges = []string{"score", "cost", "latency"}

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
	for _, flag := range fields {
		value := v.Text(flag)
		if value == "" {
			continue
		}
		if slices.Contains(ranges, flag) && !strings.Contains(value, "..") || value == ".." {
			v.RejectValue(flag, value, "is not a range such as LOW..HIGH, LOW.. or ..HIGH")
			continue
		}
		add(flag, value, term(flag, value))
	}
	words, err := filterline.ParseText(v.Text("text"))
	if err != nil {
		v.Reject("text", wire.AsError(err).Fields[0].Reason)
	}
	line = line.With(words.Terms...)
	line = line.With(parse("view", v.View().Filter()).Terms...)

	selection, err := compile(line, clock)
	if err != nil && v.Sound() {
		v.Reject("filter", wire.AsError(err).Fields[0].Reason)
	}

	return line, selection
}

// term returns the term of a flag with one value.
func term(flag, value string) filterline.Term {
	part, field := "", flag
	if flag == "after" {
		field = "since"
	}
	if name, within, named := strings.Cut(value, ":"); flag == "score" && named {
		part, value = name, within
	}

	t := filterline.Where(field, part, value)
	// In a template, an @ has a meaning.
	t.Values[0].Quoted = flag != "template"
	if flag == "trace" && len(value) < 32 {
		// Lists show the beginning of an id.
		t = t.With(filterline.Begins)
	}

	return t
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
