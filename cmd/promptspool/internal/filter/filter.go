package filter

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
)

// Flags select the records of a command.
func Flags() []cli.Flag {
	return []cli.Flag{
		config.TextFlag("filter", "", "only what this `line` finds, such as "+
			"'status:error latency:>2s since:yesterday'; `promptspool docs filter` explains it"),

		config.ListFlag("tag", "only with this `tag`; may be repeated"),
		config.ListFlag("metadata", "only with this `key=value`; may be repeated"),
		config.TextFlag("model", "", "only of this `model`"),
		config.TextFlag("provider", "", "only of this `provider`"),
		config.TextFlag("template", "", "only of this template: a `name`, name@version or name@label"),
		config.TextFlag("label", "", "only of the template's version with this `label` when it was sent"),
		config.TextFlag("status", "", "only with this `status`: SUCCESS, WARNING, ERROR"),
		config.TextFlag("score", "", "only with such a score: a `range`, such as '..20' or 'helpful:80..100'"),
		config.TextFlag("cost", "", "only with such a cost in dollars: a `range`, such as '0.01..'"),
		config.TextFlag("latency", "", "only with such a latency: a `range`, such as '2s..' or '500ms..1s'"),
		config.TextFlag("group", "", "only of this group, by its `id`"),
		config.TextFlag("sidecar", "", "only what this `sidecar` accepted"),
		config.TextFlag("text", "", "only with all of these `words` in the prompt or the response"),
		config.TextFlag("after", "", "only what started at this `time` or later: yesterday, 2026-11-21, "+
			"2026-11-21T18:00, 2h for two hours ago, and all else that --filter knows"),
		config.TextFlag("before", "", "only what started before this `time`"),
	}
}

// Read reads Flags and returns the condition, nil for none, and the words to search for.
func Read(v *config.Reader) (*wire.Filter, string) {
	f := Builder{settings: v}
	for _, tag := range v.List("tag") {
		f.Add("tags", "is", tag, "")
	}
	for _, pair := range v.List("metadata") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			v.RejectValue("metadata", pair, "is not key=value")
		}
		f.Add("metadata", "is", value, key)
	}

	for _, flag := range []struct{ name, field string }{
		{"model", "engine"},
		{"provider", "provider_type"},
		{"label", "label"},
		{"status", "status"},
		{"group", "group_id"},
		{"sidecar", "sidecar"},
	} {
		if value := v.Text(flag.name); value != "" {
			f.Add(flag.field, "is", value, "")
		}
	}
	f.template(v.Text("template"))
	status := v.Text("status")
	if status != "" && !slices.Contains(wire.Statuses, strings.ToUpper(status)) {
		v.Reject("status", "is not one of "+strings.Join(wire.Statuses, ", "))
	}

	// The name of a score may be left out: 80..100 instead of name:80..100.
	scoreName, scoreRange, named := strings.Cut(v.Text("score"), ":")
	if !named {
		scoreName, scoreRange = "", scoreName
	}
	plainNumber := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	milliseconds := func(s string) (float64, error) {
		d, err := time.ParseDuration(s)
		return float64(d) / 1e6, err
	}
	f.within("score", "score", scoreRange, scoreName, plainNumber)
	f.within("cost", "cost", v.Text("cost"), "", plainNumber)
	f.within("latency", "latency_ms", v.Text("latency"), "", milliseconds)

	for _, bound := range []string{"after", "before"} {
		if value := v.Text(bound); value != "" {
			f.started(bound, value)
		}
	}

	selection := line(v)
	if f.Filters == nil {
		selection = selection.Narrow(nil, v.Text("text"))
	} else {
		selection = selection.Narrow(&wire.Filter{Logic: "AND", Filters: f.Filters}, v.Text("text"))
	}
	return selection.Filter, selection.Words
}

// line reads --filter.
func line(v *config.Reader) filterline.Selection {
	selection, err := filterline.Read(v.Text("filter"), clock(v))
	if err != nil {
		v.Reject("filter", wire.AsError(err).Fields[0].Reason)
	}
	return selection
}

// clock is that of who types at a terminal: its days, or those of UTC.
func clock(v *config.Reader) filterline.Clock {
	return filterline.Clock{Now: time.Now(), Zone: v.Zone()}
}

// Builder collects conditions that must all hold.
type Builder struct {
	settings *config.Reader
	Filters  []wire.Filter
}

// Add adds a condition. key is the nested key of a field that has one, otherwise "".
func (f *Builder) Add(field, operator string, value any, key string) {
	raw, _ := json.Marshal(value) // a string or a number always encodes
	f.Filters = append(f.Filters, wire.Filter{Field: field, Operator: operator, Value: raw, NestedKey: key})
}

// template reads name, name@version or name@label. A name may contain an @ itself.
func (f *Builder) template(s string) {
	if s == "" {
		return
	}

	name, selector, ok := cutLast(s, "@")
	// A number is taken for a version. A label of digits has its own flag.
	if n, err := strconv.Atoi(selector); ok && err == nil {
		f.Add("prompt_name", "is", name, "")
		f.Add("prompt_version_number", "eq", n, "")
		return
	}

	// name@label may also be the name of a template: match either.
	whole := Builder{}
	whole.Add("prompt_name", "is", s, "")
	if !ok || name == "" || selector == "" {
		f.Filters = append(f.Filters, whole.Filters...)
		return
	}

	labelled := Builder{}
	labelled.Add("prompt_name", "is", name, "")
	labelled.Add("label", "is", selector, "")
	either := append(whole.Filters, wire.Filter{Logic: "AND", Filters: labelled.Filters})
	f.Filters = append(f.Filters, wire.Filter{Logic: "OR", Filters: either})
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// within reads low..high, of which one may be left out.
func (f *Builder) within(flag, field, s, key string, read func(string) (float64, error)) {
	if s == "" {
		return
	}
	low, high, ok := strings.Cut(s, "..")
	if !ok || low == "" && high == "" {
		f.settings.RejectValue(flag, s, "is not a range such as LOW..HIGH, LOW.. or ..HIGH")
		return
	}

	var ends []float64
	for _, bound := range []struct{ operator, text string }{{"gte", low}, {"lte", high}} {
		if bound.text == "" {
			continue
		}
		// The server sees numbers: it knows no units.
		n, err := read(bound.text)
		if err != nil {
			f.settings.RejectValue(flag, bound.text, "is not a bound of a range here; see --help")
			continue
		}
		ends = append(ends, n)
		f.Add(field, bound.operator, n, key)
	}
	if len(ends) == 2 && ends[0] > ends[1] {
		f.settings.RejectValue(flag, s, "is a range that ends before it begins")
	}
}

// started reads --after or --before, in the words of a filter line. A day is its beginning.
func (f *Builder) started(flag, text string) {
	operator := map[string]string{"after": "gte", "before": "lt"}[flag]
	if at, ok := clock(f.settings).Begin(text); ok {
		f.Add("list_time", operator, at, "")
		return
	}

	// The server also takes seconds since 1970.
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		f.Add("list_time", operator, text, "")
		return
	}
	f.settings.RejectValue(flag, text, "is not a day or a time, such as today, yesterday, 2026-11-21, "+
		"2026-11-21T18:00, or 2h for two hours ago")
}
