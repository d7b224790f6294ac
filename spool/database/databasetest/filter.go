package databasetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// vocabulary lists the fields of random filters, with values that random histories may
// have.
var vocabulary = withNumbers([]word{
	{field: "model", operators: texts, values: models},
	{field: "function_name", operators: texts, values: functions},
	{field: "provider", operators: texts, values: []string{"openai", "OpenAI", "ANTHROPIC"}},
	{field: "status", operators: texts, values: []string{"SUCCESS", "error", "Error"}},
	{field: "tags", operators: texts, values: tags},
	{field: "metadata", operators: append(metadataOnly, texts...), values: values},
	{field: "metadata_keys", operators: texts, values: keys},
	{field: "session_id", operators: texts, values: values[:4]},
	{field: "user_id", operators: texts, values: values},
	{field: "trace_id", operators: texts, values: append([]string{strings.ToUpper(traces[0])}, traces...)},
	{field: "score_name", operators: texts, values: names},
	{field: "score_value", operators: texts, values: scoreTexts},
	{field: "score_author", operators: texts, values: scoreAuthors},
	{field: "prompt_name", operators: texts, values: templates},
	{field: "label", operators: texts, values: labels},
	{field: "group_id", operators: texts, values: groups},
	{field: "sidecar", operators: texts, values: sidecars},
	{field: "error_type", operators: texts, values: append([]string{"provider_timeout"}, errors...)},
	{field: "tool_names", operators: texts, values: tools},
	{field: "finish_reason", operators: texts, values: append([]string{"tool_calls", "sToP"}, reasons...)},
	{field: "is_json", operators: flags},
	{field: "is_tool_call", operators: flags},
	{field: "is_plain_text", operators: flags},
	{field: "score", operators: numbers},
	{field: "list_time", operators: []string{"before", "after", "gte", "lte"}, times: true},
	{field: "accepted_at", operators: []string{"before", "after", "is_null"}, times: true},
	{field: "request_start_time", operators: []string{"before", "after", "gte", "is_not_null"}, times: true},
})

// word is a field of random filters.
type word struct {
	field     string
	operators []string
	values    []string // nil for numbers and times
	times     bool
}

// withNumbers adds the fields of all columns of numbers.
func withNumbers(words []word) []word {
	for c := range rowcode.ColumnBody {
		if d := rowcode.Define(c); d.Number() != nil {
			words = append(words, word{field: d.Fields[0], operators: numbers})
		}
	}
	return words
}

var (
	flags = []string{"is_true", "is_false"}
	texts = []string{
		"is", "is_not", "contains", "not_contains", "starts_with", "not_starts_with", "ends_with", "not_ends_with",
		"in", "not_in", "is_empty", "is_not_null",
	}
	metadataOnly = []string{"key_equals", "key_not_equals", "key_contains"}
	numbers      = []string{"eq", "neq", "gt", "gte", "lt", "lte", "between", "is_null", "is_not_null"}
)

// Filter draws a filter that query.Compile accepts: a group, with groups in it down to
// depth.
func Filter(t *rapid.T, depth int) wire.Filter {
	f := wire.Filter{
		Logic:   rapid.SampledFrom([]string{"", "AND", "OR"}).Draw(t, "logic"),
		Filters: []wire.Filter{},
	}
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		if depth > 1 && rapid.Bool().Draw(t, "group") {
			f.Filters = append(f.Filters, Filter(t, depth-1))
		} else {
			f.Filters = append(f.Filters, drawCondition(t))
		}
	}

	return f
}

// drawCondition draws a condition on one field.
func drawCondition(t *rapid.T) wire.Filter {
	word := rapid.SampledFrom(vocabulary).Draw(t, "field")
	f := wire.Filter{Field: word.field, Operator: rapid.SampledFrom(word.operators).Draw(t, "operator")}
	switch word.field {
	case "metadata":
		f.NestedKey = pick(t, keys)
	case "score", "score_value", "score_author":
		f.NestedKey = rapid.SampledFrom([]string{"", "default", "compiles"}).Draw(t, "score name")
	}

	value := func() any {
		switch {
		case word.times:
			return Start.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "second")) * time.Second)
		case word.values == nil:
			return rapid.SampledFrom([]float64{-1, 0, 0.29, 0.295, 1, 2, 50, 1000, 2000}).Draw(t, "number")
		}
		return pick(t, word.values)
	}

	// Some operators take two values, some take none.
	var v any
	switch {
	case f.Operator == "between": // the lowest first
		ends := []any{value(), value()}
		slices.SortFunc(ends, func(a, b any) int {
			if at, ok := a.(time.Time); ok {
				return at.Compare(b.(time.Time))
			}
			return cmp.Compare(a.(float64), b.(float64))
		})
		v = ends
	case slices.Contains([]string{"in", "not_in"}, f.Operator):
		v = []any{value(), value()}
	case slices.Contains([]string{"is_null", "is_not_null", "is_empty", "is_true", "is_false"}, f.Operator):
		return f
	default:
		v = value()
	}
	f.Value, _ = json.Marshal(v) // texts, numbers and times always encode

	return f
}

// withWords returns the filter that also asks for words in the prompt or the response.
func withWords(words string, f *wire.Filter) *wire.Filter {
	all := wire.Filter{Logic: "AND", Filters: []wire.Filter{}}
	for word := range strings.FieldsSeq(words) {
		all.Filters = append(all.Filters, Condition("text", "", "matches", word))
	}
	if len(all.Filters) == 0 {
		return f
	}
	if f != nil {
		all.Filters = append(all.Filters, *f)
	}

	return &all
}

// Texts of few words meet. Some are not ASCII, or of a script without blanks.
var (
	wordGaps  = []string{" ", " ", ". ", "-", "_", "", "\n"}
	textWords = []string{"refund", "Refunds", "REFUND", "ref", "a", "30", "days", "Zürich", "zurich", "東", "京"}
)

// drawText draws up to so many words.
func drawText(t *rapid.T, most int) string {
	var b strings.Builder
	for range rapid.IntRange(1, most).Draw(t, "words") {
		b.WriteString(pick(t, textWords) + pick(t, wordGaps))
	}
	return strings.TrimSpace(b.String())
}

// drawAsked draws a filter of texts of which each operator is as likely as any.
func drawAsked(t *rapid.T, depth int) wire.Filter {
	if depth > 0 && rapid.Bool().Draw(t, "group") {
		f := wire.Filter{Logic: rapid.SampledFrom([]string{"AND", "OR"}).Draw(t, "logic")}
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			f.Filters = append(f.Filters, drawAsked(t, depth-1))
		}
		return f
	}
	if rapid.IntRange(0, 5).Draw(t, "of a tag") == 0 {
		return Condition("tags", "", "is", pick(t, append([]string{"masked"}, textWords...)))
	}
	operator := rapid.SampledFrom([]string{
		"matches", "not_matches", "matches *", "contains", "not_contains", "starts_with", "ends_with",
	}).Draw(t, "operator")
	operator, open := strings.CutSuffix(operator, " *")
	value := drawText(t, 3)
	if open {
		value += "*"
	}

	field := rapid.SampledFrom([]string{"text", "input_text", "output_text"}).Draw(t, "field")

	return Condition(field, "", operator, value)
}

// textEvent draws a call with texts, or a part of one that comes by itself.
func textEvent(t *rapid.T, n int, requestID string) archive.Event {
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		return Event(t, n, wire.KindMetadata, requestID, `{"metadata":{"note":"`+pick(t, textWords)+`"}}`)
	case 1: // a traced call, of which the last that was sent of it counts
		body := encoded(map[string]any{"resource": map[string]any{}, "span": map[string]any{
			"traceId": traces[0], "spanId": fmt.Sprintf("%016x", n+1), "name": "chat",
			"startTimeUnixNano": "1795318943782000000",
			"attributes": []any{
				attribute("gen_ai.operation.name", "chat"),
				attribute("gen_ai.input.messages", string(encoded([]any{map[string]any{
					"role": "user", "parts": []any{map[string]any{"type": "text", "content": drawText(t, 6)}},
				}}))),
			},
		}})
		return Event(t, n, wire.KindSpan, requestID, string(body))
	}
	body, _ := json.Marshal(map[string]any{
		"function_name": "openai.chat.completions.create",
		"tags":          []string{pick(t, textWords)},
		"kwargs":        map[string]any{"messages": []any{map[string]any{"role": "user", "content": drawText(t, 6)}}},
		"request_response": map[string]any{
			"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": drawText(t, 6)}}},
		},
	})

	return Event(t, n, wire.KindRequest, requestID, string(body))
}

// words asks for words after events, edits, as masking makes them, and deletions. Everything derived
// from the records must follow.
func words(t *testing.T, open Open) {
	s, reopen := open(t)
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		account := wire.NewID()
		var events []archive.Event
		for n := range rapid.IntRange(4, 24).Draw(t, "events") {
			events = append(events, textEvent(t, n, ID(1000+rapid.IntRange(0, 9).Draw(t, "call"))))
		}
		gone := map[string]bool{}
		for _, batch := range Batches(t, events) {
			apply(t, s, account, batch...)
		}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			id := ID(1000 + rapid.IntRange(0, 9).Draw(t, "changed"))
			if rapid.Bool().Draw(t, "delete") {
				which := wire.Deletion{RequestID: id}
				remove(t, s, account, which)
				gone[id] = true
			} else {
				had := isSaid(t, s, account, id, "refund")
				if changed := Mask(t, s, account, "refund", id); (changed > 0) != had {
					t.Fatalf("%d records were changed; %s had the word: %v", changed, id, had)
				}
				if isSaid(t, s, account, id, "refund") {
					t.Fatalf("%s has the word still", id)
				}
			}
			// What follows others makes stores pack, or index, what they hold.
			n := 100 + len(events)
			more := textEvent(t, n, ID(1000+n))
			events = append(events, more)
			apply(t, s, account, more)
		}

		if rapid.IntRange(0, 3).Draw(t, "reopen") == 0 {
			s = reopen()
		}
		settle(t, s, account)

		// The oracle reads what the store says of each call; others check that it is right.
		states, bodies := map[string]*archive.State{}, map[string]json.RawMessage{}
		for _, e := range events {
			state, kept, err := s.Bodies(context.Background(), account, e.RequestID)
			if gone[e.RequestID] != (err != nil) {
				t.Fatalf("record %s, deleted %v: %v", e.RequestID, gone[e.RequestID], err)
			}
			if err == nil {
				states[e.RequestID] = &state
				maps.Copy(bodies, kept)
			}
		}
		sameOrphans(t, states, s, account)
		sameRollups(t, states, s, account)
		for range 8 {
			f := drawAsked(t, 2)
			q := compiled(t, wire.Search{FilterGroup: &f, PerPage: 50})
			q.Budget = time.Hour
			subject := func(row *wire.Row) *query.Subject { return Subject(states, bodies, row) }
			want := Select(q, Rows(states), subject).Rows
			page, err := s.Search(context.Background(), account, q)
			if err != nil || page.Total != len(want) || page.TotalIsLowerBound {
				t.Fatalf("%+v: total %d (%v, %v), want %d", f, page.Total, page.TotalIsLowerBound, err, len(want))
			}
			sameRows(t, want, page.Rows)
			found += len(want)
		}
	})
	if found == 0 {
		t.Error("no filter found anything")
	}
}

// isSaid reports whether a record, or one of its bodies, has a word.
func isSaid(t rapid.TB, s archive.Store, account, id, word string) bool {
	t.Helper()
	state, bodies, err := s.Bodies(context.Background(), account, id)
	if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
		t.Fatal(err)
	}

	return bytes.Contains(encoded([]any{state, bodies}), []byte(word))
}

// WithAndWithoutIndex returns the ids of the records that have a word. A search for it finds those in
// indexed, and those in scanned if no index can help.
func WithAndWithoutIndex(t testing.TB, s archive.Store, account, word string) (indexed, scanned []string) {
	t.Helper()
	f := Condition("text", "", "matches", word)
	either := wire.Filter{Logic: "OR", Filters: []wire.Filter{f, Condition("text", "", "matches", "nowhere*")}}
	for filter, ids := range map[*wire.Filter]*[]string{&f: &indexed, &either: &scanned} {
		for _, row := range search(t, s, account, wire.Search{FilterGroup: filter, PerPage: 1000}).Rows {
			*ids = append(*ids, row.RequestID)
		}
	}

	return indexed, scanned
}

// Says returns a call whose prompt is a text.
func Says(t rapid.TB, n int, requestID, text string) archive.Event {
	return Event(t, n, wire.KindRequest, requestID, `{"function_name":"openai.chat.completions.create",`+
		`"metadata":{"user":"`+requestID+`"},"kwargs":{"messages":[{"role":"user","content":"`+text+`"}]}}`)
}
