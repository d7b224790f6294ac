package query_test

import (
	"encoding/json"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/databasetest"
)

// condition returns a filter of one condition. An empty value is left out.
func condition(field, key, operator, value string) *wire.Filter {
	return &wire.Filter{Field: field, NestedKey: key, Operator: operator, Value: json.RawMessage(value)}
}

func TestWhatASearchRefuses(t *testing.T) {
	group := func(n int) *wire.Filter { // n nested groups
		f := condition("model", "", "is", `"m"`)
		for range n {
			f = &wire.Filter{Filters: []wire.Filter{*f}}
		}

		return f
	}
	many := &wire.Filter{Filters: make([]wire.Filter, 101)}
	for i := range many.Filters {
		many.Filters[i] = *condition("model", "", "is", `"m"`)
	}

	values := `[` + strings.Repeat(`"x",`, 1000) + `"x"]`

	for _, c := range []struct {
		name   string
		search wire.Search
		field  string // at fault
		says   string
	}{
		{"a field that there is not", wire.Search{FilterGroup: condition("colour", "", "is", `"red"`)},
			"filter_group.field", "metadata_keys"},
		{"no field", wire.Search{FilterGroup: &wire.Filter{Filters: []wire.Filter{{}}}},
			"filter_group.filters[0].field", "missing"},
		{"no operator", wire.Search{FilterGroup: condition("model", "", "", `"x"`)},
			"filter_group.operator", "starts_with"},
		{"an operator of another type", wire.Search{FilterGroup: condition("model", "", "gt", `"x"`)},
			"filter_group.operator", "contains"},
		{"a text operator on a number", wire.Search{FilterGroup: condition("cost", "", "contains", `1`)},
			"filter_group.operator", "between"},
		{"a key operator on a list", wire.Search{FilterGroup: condition("tags", "", "key_equals", `"x"`)},
			"filter_group.operator", "is_not"},
		{"metadata without a key", wire.Search{FilterGroup: condition("metadata", "", "is", `"x"`)},
			"filter_group.nested_key", "metadata_keys"},
		{"a key where there is none", wire.Search{FilterGroup: condition("tags", "a", "is", `"x"`)},
			"filter_group.nested_key", "tags"},
		{"a status that there is not", wire.Search{FilterGroup: condition("status", "", "is", `"foo"`)},
			"filter_group.value", "SUCCESS, WARNING, ERROR"},
		{"one of two such", wire.Search{FilterGroup: condition("status", "", "not_in", `["error","foo"]`)},
			"filter_group.value", "SUCCESS, WARNING, ERROR"},
		{"a range from the higher", wire.Search{FilterGroup: condition("cost", "", "between", `[5,1]`)},
			"filter_group.value", "ends before it begins"},
		{"a variable without its name", wire.Search{FilterGroup: condition("input_variables", "", "is", `"x"`)},
			"filter_group.nested_key", "input_variable_keys"},
		{"no value", wire.Search{FilterGroup: condition("model", "", "is", ``)}, "filter_group.value", "a string"},
		{"null for a value", wire.Search{FilterGroup: condition("latency_ms", "", "gt", `null`)},
			"filter_group.value", "a number"},
		{"a text for a number", wire.Search{FilterGroup: condition("score", "", "gt", `"50"`)},
			"filter_group.value", "a number"},
		{"a number that is none", wire.Search{FilterGroup: condition("score", "", "gt", `1e999`)},
			"filter_group.value", "a number"},
		{"an object for a text", wire.Search{FilterGroup: condition("model", "", "is", `{}`)},
			"filter_group.value", "a string"},
		{"a time that is none", wire.Search{FilterGroup: condition("accepted_at", "", "after", `"yesterday"`)},
			"filter_group.value", "ISO-8601"},
		{"milliseconds for seconds", wire.Search{FilterGroup: condition("accepted_at", "", "after", `1697495400250`)},
			"filter_group.value", "seconds"},
		{"one value for in", wire.Search{FilterGroup: condition("model", "", "in", `"x"`)},
			"filter_group.value", "array"},
		{"a list of the wrong things", wire.Search{FilterGroup: condition("model", "", "not_in", `["x",true]`)},
			"filter_group.value", "a string"},
		{"too many values", wire.Search{FilterGroup: condition("model", "", "in", values)},
			"filter_group.value", "1000"},
		{"three ends of a range", wire.Search{FilterGroup: condition("score", "", "between", `[1,2,3]`)},
			"filter_group.value", "two"},
		{"an unknown logic", wire.Search{FilterGroup: &wire.Filter{Logic: "XOR", Filters: group(1).Filters}},
			"filter_group.logic", "AND or OR"},
		{"a group that is a condition too",
			wire.Search{FilterGroup: &wire.Filter{Field: "model", Filters: group(1).Filters}},
			"filter_group", "both"},
		{"too many groups in each other", wire.Search{FilterGroup: group(17)},
			"filter_group" + strings.Repeat(".filters[0]", 16), "16"},
		{"too many conditions", wire.Search{FilterGroup: many}, "filter_group", "100"},
		{"a page of too many", wire.Search{PerPage: 1001}, "per_page", "1000"},
		{"a page too far", wire.Search{Page: 102, PerPage: 1000}, "page", "cursor"},
		{"a page beyond all numbers", wire.Search{Page: 1 << 62, PerPage: 1000}, "page", "cursor"},
		{"a page and a cursor", wire.Search{Page: 2, Cursor: "x"}, "page", "cursor"},
		{"a cursor that is none", wire.Search{Cursor: "x"}, "cursor", "next_cursor"},
		{"a cursor of something else", wire.Search{Cursor: "MjAyNi0wMy0wMVQxMjowMDowMFogeA"}, "cursor", "next_cursor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := query.Compile(c.search)
			e := wire.AsError(err)
			if err == nil || e.Code != wire.CodeInvalid || len(e.Fields) != 1 {
				t.Fatalf("got %v, want a 422 about one field", err)
			}
			if e.Fields[0].Field != c.field || !strings.Contains(e.Fields[0].Reason, c.says) {
				t.Errorf("got %q %q, want %q and a reason that contains %q",
					e.Fields[0].Field, e.Fields[0].Reason, c.field, c.says)
			}
		})
	}

	for name, f := range map[string]*wire.Filter{
		"16 groups":     group(16),
		"nothing":       {},
		"no conditions": {Filters: []wire.Filter{}},
		"an empty OR":   {Logic: "or"},
	} {
		if _, err := query.Compile(wire.Search{FilterGroup: f}); err != nil {
			t.Errorf("a filter of %s is rejected: %v", name, err)
		}
	}
}

func TestWhatAFilterFinds(t *testing.T) {
	states, _ := databasetest.Fold([]archive.Event{
		event(t, 1, wire.KindRequest, `{"function_name":"openai.ChatCompletion.create","provider_type":"openai",`+
			`"kwargs":{"model":"GPT-4o"},
			"request_response":{"usage":{"prompt_tokens":10,"completion_tokens":0}},`+
			`"tags":["production","Müller"],"group_id":7,
			"metadata":{"user":"Ada","empty":""},"request_start_time":1000,"request_end_time":1001.234,`+
			`"prompt_id":"greeting","prompt_version":2,"prompt_label":"prod"}`),
		event(t, 2, wire.KindScore, `{"score":80}`),
		event(t, 3, wire.KindScore, `{"score":20,"name":"style"}`),
		event(t, 4, wire.KindScore, `{"value":"rude","name":"tone","author":"ann"}`),
		event(t, 5, wire.KindScore, `{"value":true,"name":"ok","author":"bob"}`),
		event(t, 6, wire.KindScore, `{"value":0.5,"name":"ok"}`),
	})
	full, _ := states[databasetest.ID(1000)].Row()

	states, _ = databasetest.Fold([]archive.Event{event(t, 1, wire.KindRequest, `{}`)})
	bare, _ := states[databasetest.ID(1000)].Row()

	for _, c := range []struct {
		field, key, operator, value string
		full, bare                  bool
	}{
		{"model", "", "is", `"GPT-4o"`, true, false},
		{"engine", "", "is", `"gpt-4o"`, false, false},
		{"model", "", "contains", `"gpt"`, true, false},
		{"model", "", "starts_with", `"gPt-"`, true, false},
		{"model", "", "ends_with", `"4O"`, true, false},
		{"model", "", "not_starts_with", `"gPt-"`, false, true},
		{"model", "", "not_ends_with", `"4O"`, false, true},
		{"model", "", "is_not", `"GPT-4o"`, false, true},
		{"model", "", "not_contains", `"claude"`, true, true},
		{"model", "", "in", `["a","GPT-4o"]`, true, false},
		{"model", "", "not_in", `["a","GPT-4o"]`, false, true},
		{"model", "", "in", `[]`, false, false},
		{"model", "", "is_null", ``, false, true},
		{"model", "", "is_not_empty", ``, true, false},
		{"provider", "", "eq", `"openai"`, true, false},
		{"pl_id", "", "is", `"` + databasetest.ID(1000) + `"`, true, true},
		{"status", "", "is", `"SUCCESS"`, true, true},
		{"sidecar", "", "is", `"host-a"`, true, true},
		{"prompt_id", "", "is", `"greeting"`, true, false},
		{"label", "", "is", `"prod"`, true, false},
		{"group_id", "", "is", `7`, true, false},
		{"tags", "", "is", `"production"`, true, false},
		{"tags", "", "is", `"Production"`, false, false},
		{"tags", "", "contains", `"MÜLL"`, true, false},
		{"tags", "", "is_not", `"production"`, false, true},
		{"tags", "", "is_empty", ``, false, true},
		{"metadata", "user", "key_equals", `"Ada"`, true, false},
		{"metadata", "user", "key_not_equals", `"Ada"`, false, true},
		{"metadata", "user", "key_contains", `"da"`, true, false},
		{"metadata", "empty", "is_empty", ``, true, true},
		{"metadata", "empty", "is_null", ``, false, true},
		{"metadata", "empty", "is", `""`, true, false},
		{"metadata_keys", "", "contains", `"use"`, true, false},
		{"score", "default", "gte", `80`, true, false},
		{"score", "default", "lt", `80`, false, false},
		{"score", "style", "eq", `20.0`, true, false},
		{"score", "other", "neq", `20`, true, true},
		{"score", "", "lt", `50`, true, false},
		{"score", "", "neq", `20`, false, true},
		{"score", "", "between", `[70,80]`, true, false},
		{"score", "ok", "eq", `1`, true, false},
		{"score", "ok", "between", `[0.4,0.6]`, true, false},
		{"score", "tone", "is_null", ``, true, true},
		{"score_value", "tone", "is", `"rude"`, true, false},
		{"score_value", "ok", "is", `"true"`, true, false},
		{"score_value", "ok", "is", `"0.5"`, false, false},
		{"score_value", "", "contains", `"RUD"`, true, false},
		{"score_author", "", "in", `["bob"]`, true, false},
		{"score_author", "tone", "is", `"bob"`, false, false},
		{"score_name", "", "is", `"style"`, true, false},
		{"input_tokens", "", "eq", `10`, true, false},
		{"output_tokens", "", "eq", `0`, true, false},
		{"output_tokens", "", "is_null", ``, false, true},
		{"cost", "", "is_null", ``, true, true},
		{"latency_ms", "", "eq", `1234`, true, false},
		{"latency_ms", "", "in", `[1,1234]`, true, false},
		{"prompt_version_number", "", "gt", `1`, true, false},
		{"request_start_time", "", "is", `"1970-01-01T00:16:40Z"`, true, false},
		{"request_start_time", "", "before", `1000.5`, true, false},
		{"request_end_time", "", "between", `[1000, "1970-01-01T00:16:42Z"]`, true, false},
		{"accepted_at", "", "after", `"2026-03-01T12:00:00Z"`, true, true},
		{"accepted_at", "", "before", `"2026-03-01 12:00:01"`, false, false},
		{"accepted_at", "", "lte", `"2026-03-01T13:00:01+01:00"`, true, true},
	} {
		f := condition(c.field, c.key, c.operator, c.value)
		wantMatch(t, f, full, c.full)
		wantMatch(t, f, bare, c.bare)
	}
}

// wantMatch checks whether a filter finds a row.
func wantMatch(t *testing.T, f *wire.Filter, row wire.Row, want bool) {
	t.Helper()
	q, err := query.Compile(wire.Search{FilterGroup: f})
	if err != nil {
		t.Errorf("%+v: %v", f, err)
	} else if got := q.Match(&query.Subject{Row: &row}); got != want {
		t.Errorf("%+v, value %s, matches %+v: %v", f, f.Value, row, got)
	}
}

func TestGroupsCombineConditions(t *testing.T) {
	row := wire.Row{Engine: "m", Status: "SUCCESS"}
	yes, no := *condition("model", "", "is", `"m"`), *condition("model", "", "is", `"x"`)
	group := func(logic string, parts ...wire.Filter) wire.Filter {
		return wire.Filter{Logic: logic, Filters: append([]wire.Filter{}, parts...)}
	}

	for _, c := range []struct {
		filter wire.Filter
		want   bool
	}{
		{group(""), true},
		{group("OR"), true},
		{group("", yes, no), false},
		{group("AND", yes, yes), true},
		{group("or", yes, no), true},
		{group("OR", no, no), false},
		{group("AND", group("OR", no, yes), yes), true},
		{group("OR", group("AND", no, yes), no), false},
	} {
		wantMatch(t, &c.filter, row, c.want)
	}
}

func TestWordsMatchInAnyCaseAndOtherTextsExactly(t *testing.T) {
	row := wire.Row{
		Status:       "ERROR",
		Provider:     "OpenAI",
		FinishReason: "STOP",
		ErrorType:    "PROVIDER_TIMEOUT",
		Engine:       "GPT",
		Tags:         []string{"Demo"},
	}

	for _, c := range []struct {
		field, operator, value string
		want                   bool
	}{
		{"status", "is", `"error"`, true},
		{"status", "is_not", `"error"`, false},
		{"status", "in", `["warning","Error"]`, true},
		{"status", "starts_with", `"err"`, true},
		{"provider_type", "is", `"openai"`, true},
		{"provider", "eq", `"OPENAI"`, true},
		{"finish_reason", "is", `"stop"`, true},
		{"finish_reason", "in", `["tool_use","end_turn"]`, true}, // another provider's word for it
		{"finish_reason", "is_not", `"tool-calls"`, true},
		{"error_type", "not_in", `["provider_timeout"]`, false},
		{"model", "is", `"gpt"`, false},
		{"tags", "is", `"demo"`, false},
	} {
		wantMatch(t, condition(c.field, "", c.operator, c.value), row, c.want)
	}
}

// event returns the nth event of the record databasetest.ID(1000), as databasetest.Event does.
func event(t testing.TB, n int, kind wire.Kind, body string) archive.Event {
	t.Helper()

	return databasetest.Event(t, n, kind, databasetest.ID(1000), body)
}
