package query_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

func TestABodyThatHoldsTheWordsIsNeverPassedOver(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.StringOf(rapid.SampledFrom([]rune("abAB 1.é\u212aı\"\\/\n<")))
		content := piece.Draw(t, "content")
		response := any(map[string]any{"choices": []any{map[string]any{
			"message": map[string]any{"role": "assistant", "content": piece.Draw(t, "answer")},
		}}})
		if rapid.Bool().Draw(t, "stream") {
			chunk := func() any {
				return map[string]any{"choices": []any{map[string]any{
					"index": 0, "delta": map[string]any{"content": piece.Draw(t, "chunk")},
				}}}
			}
			response = []any{chunk(), chunk()}
		}

		body, err := json.Marshal(map[string]any{
			"function_name":    "openai.chat.completions.create",
			"request_response": response,
			"kwargs":           map[string]any{"messages": []any{map[string]any{"role": "user", "content": content}}},
		})
		if err != nil {
			t.Fatal(err)
		}

		// Some clients escape all that is not ASCII; escaping a letter is odd, but valid.
		if rapid.Bool().Draw(t, "escaped") {
			escapes := map[string]string{"é": `\u00e9`, "\u212a": `\u212a`, "ı": `\u0131`, "A": `\u0041`, "b": `\u0062`}
			letter := rapid.SampledFrom(slices.Sorted(maps.Keys(escapes))).Draw(t, "letter")
			body = bytes.ReplaceAll(body, []byte(`:"`+letter), []byte(`:"`+escapes[letter]))
		}

		word := rapid.StringOfN(rapid.SampledFrom([]rune("abk1.éi/")), 1, 3, -1)
		f := wire.Filter{
			Field: rapid.SampledFrom([]string{"text", "input_text", "output_text"}).Draw(t, "field"),
			Operator: rapid.SampledFrom(
				[]string{"matches", "contains", "starts_with", "ends_with"}).Draw(t, "operator"),
		}
		f.Value, _ = json.Marshal("a" + word.Draw(t, "word"))
		q, err := query.CompileMatch(&f)
		if err != nil {
			t.Fatal(err)
		}

		may, _ := q.MayHold(body, nil)
		if !may {
			passed++
		}
		subject := query.Subject{Row: &wire.Row{}, Body: func() ([]byte, error) { return body, nil }}
		if !may && q.Match(&subject) {
			t.Fatalf("%v finds %s, but MayHold is false", f, body)
		}
	})

	if passed == 0 {
		t.Error("MayHold was true for every body")
	}
}
