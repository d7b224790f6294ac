package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

// filterFlags say which records a command is about.
func filterFlags() []cli.Flag {
	return []cli.Flag{
		listFlag("tag", "only with this `tag`; may be repeated"),
		listFlag("metadata", "only with this `key=value`; may be repeated"),
		stringFlag("model", "", "only of this `model`"),
		stringFlag("provider", "", "only of this `provider`"),
		stringFlag("template", "", "only of this template: a `name`, name@version or name@label"),
		stringFlag("label", "", "only of the template's version with this `label` when it was sent"),
		stringFlag("status", "", "only with this `status`: SUCCESS, WARNING, ERROR"),
		stringFlag("score", "", "only with such a score: a `range` as 80..100 or ..20, or name:80..100"),
		stringFlag("cost", "", "only with such a cost in dollars: a `range` as 0.01.."),
		stringFlag("latency", "", "only with such a latency: a `range` as 2s.. or 500ms..1s"),
		stringFlag("group", "", "only of this group, by its `id`"),
		stringFlag("sidecar", "", "only what this `sidecar` accepted"),
		stringFlag("text", "", "only with all of these `words` in the prompt or the response"),
		stringFlag("after", "", "only what started after this `time`: ISO-8601, or 2h for two hours ago"),
		stringFlag("before", "", "only what started before this `time`"),
	}
}

// filter turns filterFlags into a condition, nil for none, and the words to look for.
func (v *values) filter() (*wire.Filter, string) {
	f := filterBuilder{v: v}
	for _, tag := range texts(v.c, "tag") {
		f.add("tags", "is", tag, "")
	}
	for _, pair := range texts(v.c, "metadata") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			v.note(wrong(v.c, "metadata", pair, "is not key=value"))
		}
		f.add("metadata", "is", value, key)
	}
	for _, flag := range []struct{ name, field string }{
		{"model", "engine"}, {"provider", "provider_type"}, {"label", "label"}, {"status", "status"}, {"group", "group_id"}, {"sidecar", "sidecar"},
	} {
		if value := v.text(flag.name); value != "" {
			f.add(flag.field, "is", value, "")
		}
	}
	f.template(v.text("template"))
	scoreName, scoreRange, named := strings.Cut(v.text("score"), ":")
	if !named {
		scoreName, scoreRange = "", scoreName
	}
	plainNumber := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	milliseconds := func(s string) (float64, error) {
		d, err := time.ParseDuration(s)
		return float64(d) / 1e6, err
	}
	f.within("score", "score", scoreRange, scoreName, plainNumber)
	f.within("cost", "cost", v.text("cost"), "", plainNumber)
	f.within("latency", "latency_ms", v.text("latency"), "", milliseconds)
	for _, bound := range []string{"after", "before"} {
		if value := v.text(bound); value != "" {
			f.add("request_start_time", bound, ago(value), "")
		}
	}
	if f.filters == nil {
		return nil, v.text("text")
	}

	return &wire.Filter{Logic: "AND", Filters: f.filters}, v.text("text")
}

type filterBuilder struct {
	v       *values
	filters []wire.Filter
}

func (f *filterBuilder) add(field, operator string, value any, key string) {
	raw, _ := json.Marshal(value) // a string or a number always encodes
	f.filters = append(f.filters, wire.Filter{Field: field, Operator: operator, Value: raw, NestedKey: key})
}

// template reads name, name@version or name@label. A name may hold an @ itself.
func (f *filterBuilder) template(s string) {
	if s == "" {
		return
	}

	name, selector, ok := cutLast(s, "@")
	if n, err := strconv.Atoi(selector); ok && err == nil {
		f.add("prompt_name", "is", name, "")
		f.add("prompt_version_number", "eq", n, "")
		return
	}

	whole := filterBuilder{}
	whole.add("prompt_name", "is", s, "")
	if !ok || name == "" || selector == "" {
		f.filters = append(f.filters, whole.filters...)
		return
	}

	labelled := filterBuilder{}
	labelled.add("prompt_name", "is", name, "")
	labelled.add("label", "is", selector, "")
	either := append(whole.filters, wire.Filter{Logic: "AND", Filters: labelled.filters})
	f.filters = append(f.filters, wire.Filter{Logic: "OR", Filters: either})
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// within reads low..high, of which either may be left out.
func (f *filterBuilder) within(flag, field, s, key string, read func(string) (float64, error)) {
	if s == "" {
		return
	}
	low, high, ok := strings.Cut(s, "..")
	if !ok || low == "" && high == "" {
		f.v.note(wrong(f.v.c, flag, s, "is not a range such as LOW..HIGH, LOW.. or ..HIGH"))
		return
	}

	for _, bound := range []struct{ operator, text string }{{"gte", low}, {"lte", high}} {
		if bound.text == "" {
			continue
		}
		n, err := read(bound.text)
		if err != nil {
			f.v.note(wrong(f.v.c, flag, bound.text, "is not a bound of a range here; see --help"))
			continue
		}
		f.add(field, bound.operator, n, key)
	}
}

// ago turns a duration into the time so long ago; anything else stays as it is, for the server to read.
func ago(s string) string {
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return time.Now().Add(-d).UTC().Format(time.RFC3339)
	}
	return s
}
