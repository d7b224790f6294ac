package filterline

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// Kind is the kind of values that a field has.
type Kind int

// The kinds. Texts are compared as a whole, or by their beginning, end or any part with a *.
const (
	Text     Kind = iota
	Content       // a long text, which is searched for words, or for any part of it with a *
	Template      // a template's name, perhaps with @version or @label
	Number
	Score // a number or a text
	Duration
	Time
	Flag // what a request is, as in is:json
)

// Field is a key that a line can have.
type Field struct {
	Name    string
	Kind    Kind
	Help    string   // what it is, as the documentation and completions show it
	Example string   // a term
	JSON    string   // the field of a JSON filter; "" for Flag, whose values are fields
	Aliases []string // other names, such as those of the JSON filter
	Values  []string // those that exist, if they are few; a whole value must be one of them

	// Part names what may follow the name and a dot, as in score.helpfulness; "" if nothing may.
	// If NeedsPart is set, it must.
	Part      string
	NeedsPart bool

	of     owner
	bound  string // the comparison that the name itself makes, as since does
	closed bool   // nor has it parts of values, or records without a value
	many   bool   // one request may have several values
	plain  bool   // only another spelling of a field above, which is left out of lists
}

// owner is what has a field.
type owner int

const (
	ofCalls   owner = iota
	ofBoth          // calls, and the sessions, traces and users that these add up to
	ofRollups       // only these
)

// moment is the field of a JSON filter that stands for the time of a request.
const moment = "list_time"

// scoreText is the field of a JSON filter for the texts of scores, which have their numbers in another.
const scoreText = "score_value"

// Fields lists what a line can ask for, in the order in which it is shown.
var Fields = []Field{
	{Name: "status", JSON: "status", Example: "status:error",
		Help: "how the call ended, in any case", Values: wire.Statuses},
	{Name: "template", Kind: Template, JSON: "prompt_name", Aliases: []string{"prompt_name", "prompt_id"},
		Help: "template, perhaps with a version or a label", Example: "template:support/triage@3"},
	{Name: "version", Kind: Number, JSON: "prompt_version_number", Aliases: []string{"prompt_version_number"},
		Help: "version of the template", Example: "version:>=3"},
	{Name: "label", JSON: "label", Example: "label:prod",
		Help: "label through which the template was fetched"},
	{Name: "model", JSON: "model", Aliases: []string{"engine"},
		Help: "model that answered", Example: "model:gpt-4o*"},
	{Name: "provider", JSON: "provider", Aliases: []string{"provider_type"},
		Help: "provider, in any case", Example: "provider:openai"},
	{Name: "tag", JSON: "tags", Aliases: []string{"tags"}, many: true,
		Help: "tag of the request", Example: "tag:(beta or canary)"},
	{Name: "metadata", JSON: "metadata", Part: "KEY", NeedsPart: true,
		Help:    "metadata; metadata. can be left out in front of a key that is not a field",
		Example: "metadata.customer:acme"},
	{Name: "session", JSON: "session_id", Aliases: []string{"session_id"},
		Help: "session or conversation, which is the metadata session_id", Example: "session:chat-17"},
	{Name: "user", JSON: "user_id", Aliases: []string{"user_id"},
		Help: "user that the call was made for, which is the metadata user_id", Example: "user:ann"},
	{Name: "environment", JSON: "environment",
		Help: "where the app runs, which is the metadata environment", Example: "environment:production"},
	{Name: "trace", JSON: "trace_id", Aliases: []string{"trace_id"},
		Help: "trace of the call, by its id", Example: "trace:4bf92f3577b3*"},
	{Name: "since", Kind: Time, JSON: moment, bound: "gte",
		Help: "at that time or later", Example: "since:yesterday"},
	{Name: "before", Kind: Time, JSON: moment, bound: "lt", Help: "before that time", Example: "before:2026-11-21"},
	{Name: "after", Kind: Time, JSON: moment, bound: "gt",
		Help: "after that time, or after the end of that day", Example: "after:2026-11-21T18:00"},
	{Name: "until", Kind: Time, JSON: moment, bound: "lte",
		Help: "up to that time, or to the end of that day", Example: "until:2026-11-21"},
	{Name: "time", Kind: Time, JSON: moment, Aliases: []string{"list_time"},
		Help: "when the call started, as lists and charts have it", Example: "time:2026-11-01..2026-11-07"},
	{Name: "received", Kind: Time, JSON: "accepted_at", Aliases: []string{"accepted_at"},
		Help: "when the request was received", Example: "received:today"},
	{Name: "started", Kind: Time, JSON: "request_start_time", Aliases: []string{"request_start_time"},
		Help: "start of the call, as the app sent it", Example: "started:today"},
	{Name: "ended", Kind: Time, JSON: "request_end_time", Aliases: []string{"request_end_time"},
		Help: "end of the call, as the app sent it", Example: "ended:>=2026-11-21T18:00"},
	{Name: "latency", Kind: Duration, JSON: "latency_ms", Help: "how long the call took", Example: "latency:>2s"},
	{Name: "time_to_first_token", Kind: Duration, JSON: "time_to_first_token_ms",
		Help: "how long the first token took to come", Example: "time_to_first_token:>500ms"},
	{Name: "cost", Kind: Number, JSON: "cost", of: ofBoth, Help: "cost in dollars", Example: "cost:>0.01"},
	{Name: "input_tokens", Kind: Number, JSON: "input_tokens", of: ofBoth,
		Help: "tokens in", Example: "input_tokens:1000.."},
	{Name: "output_tokens", Kind: Number, JSON: "output_tokens", of: ofBoth,
		Help: "tokens out", Example: "output_tokens:<50"},
	{Name: "cached_tokens", Kind: Number, JSON: "cached_tokens",
		Help: "tokens in that came from the provider's cache", Example: "cached_tokens:>0"},
	{Name: "cache_write_tokens", Kind: Number, JSON: "cache_write_tokens",
		Help: "tokens in that were written to the provider's cache", Example: "cache_write_tokens:>0"},
	{Name: "reasoning_tokens", Kind: Number, JSON: "reasoning_tokens",
		Help: "tokens out that the model thought with", Example: "reasoning_tokens:>500"},
	{Name: "score", Kind: Score, JSON: "score", Aliases: []string{scoreText}, Part: "NAME", many: true,
		Help: "a score, of one name or of any: a number, true, false or a category", Example: "score.helpfulness:<50"},
	{Name: "author", JSON: "score_author", Aliases: []string{"score_author"}, Part: "NAME", many: true,
		Help: "who or what gave a score, of one name or of any", Example: "author:gpt-4o*"},
	{Name: "score_name", JSON: "score_name", many: true, Help: "name of a score", Example: "-score_name:helpfulness"},
	{Name: "input", Kind: Content, JSON: "input_text", Aliases: []string{"input_text"},
		Help: "words of the prompt, in any case", Example: `input:"order number"`},
	{Name: "output", Kind: Content, JSON: "output_text", Aliases: []string{"output_text"},
		Help: "words of the response, in any case", Example: "output:refund*"},
	{Name: "output", JSON: "output", Part: "KEY", NeedsPart: true,
		Help: "value in a response that is a JSON object", Example: "output.intent:refund"},
	{Name: "output_key", JSON: "output_keys", Aliases: []string{"output_keys"}, many: true,
		Help: "key of a response that is a JSON object", Example: "output_key:intent"},
	{Name: "variable", JSON: "input_variables", Aliases: []string{"input_variables"}, Part: "NAME", NeedsPart: true,
		Help: "value of a template's variable", Example: "variable.city:Oslo"},
	{Name: "variable_key", JSON: "input_variable_keys", Aliases: []string{"input_variable_keys"}, many: true,
		Help: "name of a template's variable", Example: "variable_key:city"},
	{Name: "is", Kind: Flag, closed: true, Values: []string{"json", "tool_call", "plain_text"},
		Help: "what the response is", Example: "is:tool_call"},
	{Name: "tool", JSON: "tool_names", Aliases: []string{"tool_names"}, many: true,
		Help: "tool that was called", Example: "tool:get_weather"},
	{Name: "finish", JSON: "finish_reason", Aliases: []string{"finish_reason"},
		Help: "finish reason, in any provider's word", Example: "finish:tool_calls"},
	{Name: "error", JSON: "error_type", Aliases: []string{"error_type"},
		Help: "type of the error, in any case", Example: "error:RateLimitError"},
	{Name: "user_intent", JSON: "user_intent", closed: true, Help: "tone of the prompt",
		Example: "user_intent:frustrated", Values: []string{"curious", "frustrated", "satisfied"}},
	{Name: "agent_intent", JSON: "agent_intent", closed: true, Help: "tone of the response",
		Example: "agent_intent:refusal", Values: []string{"apologetic", "refusal", "uncertain"}},
	{Name: "group", JSON: "group_id", Aliases: []string{"group_id"}, many: true,
		Help: "group of the request, by its id", Example: "group:7f3a*"},
	{Name: "sidecar", JSON: "sidecar", Help: "sidecar that took the request", Example: "sidecar:pod-1"},
	{Name: "function", JSON: "function_name", Aliases: []string{"function_name"},
		Help: "function that was called", Example: "function:openai.*"},
	{Name: "metadata_key", JSON: "metadata_keys", Aliases: []string{"metadata_keys"}, many: true,
		Help: "key of metadata", Example: "metadata_key:customer"},
	{Name: "id", JSON: "request_id", Aliases: []string{"request_id", "pl_id", "id"},
		Help: "request, by its id", Example: "id:0198c1f2*"},
	{Name: "latency_ms", Kind: Number, JSON: "latency_ms", plain: true,
		Help: "latency in milliseconds", Example: "latency_ms:>2000"},
	{Name: "time_to_first_token_ms", Kind: Number, JSON: "time_to_first_token_ms", plain: true,
		Help: "time to the first token in milliseconds", Example: "time_to_first_token_ms:>500"},

	{Name: "turns", Kind: Number, JSON: "turns", of: ofRollups, Help: "calls", Example: "turns:>3"},
	{Name: "spans", Kind: Number, JSON: "spans", of: ofRollups, Help: "spans and calls", Example: "spans:>=50"},
	{Name: "errors", Kind: Number, JSON: "errors", of: ofRollups, Help: "failed calls and spans", Example: "errors:>0"},
	{Name: "tokens", Kind: Number, JSON: "tokens", of: ofRollups, Help: "tokens in and out", Example: "tokens:10000.."},
	{Name: "mean_score", Kind: Number, JSON: "mean_score", of: ofRollups,
		Help: "mean of all integer scores", Example: "mean_score:<50"},
	{Name: "first_seen", Kind: Time, JSON: "first_seen", of: ofRollups,
		Help: "when the first call or span began", Example: "first_seen:today"},
	{Name: "last_seen", Kind: Time, JSON: "last_seen", of: ofRollups,
		Help: "when the last one ended", Example: "last_seen:<7d"},
	{Name: "duration", Kind: Duration, JSON: "duration_ms", of: ofRollups,
		Help: "time from the first to the last", Example: "duration:>5m"},
}

// flagFields maps the values of Flag to the fields of a JSON filter.
var flagFields = map[string]string{"json": "is_json", "tool_call": "is_tool_call", "plain_text": "is_plain_text"}

// anywhere is the field of a text without a key.
var anywhere = &Field{Kind: Content, JSON: "text"}

// field returns the field that the values are of.
func (t *Term) field() *Field { return cmp.Or(t.Field, anywhere) }

// metadata is the field of a key that is not a field.
var metadata = find("metadata", true)

// find returns the field of a name in any case, with or without a part after a dot; nil if it
// does not exist.
func find(name string, dotted bool) *Field {
	name = strings.ToLower(name)
	for i := range Fields {
		f := &Fields[i]
		if f.Name != name && !slices.Contains(f.Aliases, name) {
			continue
		}
		if dotted && f.Part != "" || !dotted && !f.NeedsPart {
			return f
		}
	}

	return nil
}

// resolve returns the field of a key that is not quoted, and the part after its dot.
func resolve(key string) (f *Field, part string) {
	// A whole name wins over one with a part: metadata_keys is its own field.
	if f := find(key, false); f != nil {
		return f, ""
	}
	if name, part, _ := strings.Cut(key, "."); part != "" {
		if f := find(name, true); f != nil {
			return f, part
		}
	}

	return metadata, key
}

// isOrdered reports whether values can be compared by > and <.
func (f *Field) isOrdered() bool { return f.Kind >= Number && f.Kind <= Time }

// Listed reports whether lists show the field; others are spellings for programs.
func (f *Field) Listed() bool { return !f.plain }

// IsOfCalls reports whether calls have the field, and not only sessions, traces and users.
func (f *Field) IsOfCalls() bool { return f.of != ofRollups }

// Title returns the name, with what must or may follow a dot.
func (f *Field) Title() string {
	switch {
	case f.NeedsPart:
		return f.Name + "." + f.Part
	case f.Part != "":
		return f.Name + "[." + f.Part + "]"
	}
	return f.Name
}

// Clock is what the times of a line refer to.
type Clock struct {
	Now  time.Time
	Zone *time.Location // in which days begin, and of times without a zone; nil is UTC
}

// TimeWords are the words that stand for a time.
var TimeWords = []string{"today", "yesterday", "this-week", "last-week", "this-month", "last-month"}

// span is what a time in a line stands for: from its beginning until before its end. Both are the
// same for a moment.
type span struct{ from, to time.Time }

func (s span) isMoment() bool { return s.from.Equal(s.to) }

// momentLayouts are the spellings of moments, without a zone and with one.
var momentLayouts = []string{
	"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05",
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00",
}

// span reads a time: a word, a day or month, a moment, or a duration, which is that long ago.
func (c Clock) span(text string) (span, bool) {
	zone := c.Zone
	if zone == nil {
		zone = time.UTC
	}

	if s, ok := spanOfWord(strings.ToLower(text), c.Now.In(zone)); ok {
		return s, true
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return checked(dates(t, t.AddDate(0, 0, 1), zone))
	}
	if t, err := time.Parse("2006-01", text); err == nil {
		return checked(dates(t, t.AddDate(0, 1, 0), zone))
	}

	if d, ok := ParseDuration(text); ok && d > 0 {
		t := c.Now.Add(-d)
		return checked(span{t, t})
	}
	// Seconds since 1970. A small number is not a time: 2026 would be one of 1970.
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 100_000_000 {
		t := time.Unix(n, 0)
		return checked(span{t, t})
	}
	for _, layout := range momentLayouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return checked(span{t, t})
		}
	}

	return span{}, false
}

// Range returns the time that a line is about: from a moment until before another. A bound that the
// line does not set is zero.
func (l Line) Range(clock Clock) (from, to time.Time) {
	for i := range l.Terms {
		t := &l.Terms[i]
		if !t.IsTime() || t.Not || len(t.Values) != 1 || t.Values[0].Operator == Exists {
			continue
		}
		f, err := l.compileTime(t.Field, &t.Values[0], clock)
		if err != nil {
			continue
		}

		// A bound narrows the one before.
		parts := f.Filters
		if parts == nil {
			parts = []wire.Filter{f}
		}
		for _, part := range parts {
			var at time.Time
			_ = json.Unmarshal(part.Value, &at) // we made it
			switch part.Operator {
			case "gt", "gte":
				if at.After(from) {
					from = at
				}
			case "lt", "lte":
				if to.IsZero() || at.Before(to) {
					to = at
				}
			case "is":
				from, to = at, at
			}
		}
	}

	return from, to
}

// checked rejects times that JSON cannot hold.
func checked(s span) (span, bool) {
	from, to := s.from.UTC(), s.to.UTC()

	return span{from, to}, from.Year() >= 1 && to.Year() <= 9999
}

// dates returns the span from the beginning of one date to that of another.
func dates(from, to time.Time, zone *time.Location) span {
	begin := func(t time.Time) time.Time { return calendar.StartOfDay(t.Year(), t.Month(), t.Day(), zone) }

	return span{begin(from), begin(to)}
}

// spanOfWord returns the span of one of TimeWords. A week begins on Monday.
func spanOfWord(word string, now time.Time) (span, bool) {
	day := func(year int, month time.Month, day int) time.Time {
		return calendar.StartOfDay(year, month, day, now.Location())
	}
	y, m, d := now.Date()
	monday := d - (int(now.Weekday())+6)%7

	s, ok := map[string]span{
		"today":      {day(y, m, d), day(y, m, d+1)},
		"yesterday":  {day(y, m, d-1), day(y, m, d)},
		"this-week":  {day(y, m, monday), day(y, m, monday+7)},
		"last-week":  {day(y, m, monday-7), day(y, m, monday)},
		"this-month": {day(y, m, 1), day(y, m+1, 1)},
		"last-month": {day(y, m-1, 1), day(y, m, 1)},
	}[word]
	if !ok {
		return s, false
	}

	return checked(s)
}

// ParseDuration reads a duration in Go's form, or in days or weeks, such as 90d. It reports whether the text is one.
func ParseDuration(text string) (time.Duration, bool) {
	for unit, hours := range map[string]float64{"d": 24, "w": 24 * 7} {
		number, ok := strings.CutSuffix(text, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if d := n * hours * float64(time.Hour); err == nil && d >= 0 && d < math.MaxInt64 {
			return time.Duration(d), true
		}
	}

	d, err := time.ParseDuration(text)

	return d, err == nil && d >= 0
}
