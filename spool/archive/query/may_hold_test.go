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
		response := any(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": piece.Draw(t, "answer")}}}})
		if rapid.Bool().Draw(t, "stream") {
			chunk := func() any {
				return map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": piece.Draw(t, "chunk")}}}}
			}
			response = []any{chunk(), chunk()}
		}
		body, err := json.Marshal(map[string]any{"function_name": "openai.chat.completions.create", "request_response": response,
			"kwargs": map[string]any{"messages": []any{map[string]any{"role": "user", "content": content}}}})
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "escaped") { // as clients that write ASCII only, and as nobody does but may
			escapes := map[string]string{"é": `\u00e9`, "\u212a": `\u212a`, "ı": `\u0131`, "A": `\u0041`, "b": `\u0062`}
			letter := rapid.SampledFrom(slices.Sorted(maps.Keys(escapes))).Draw(t, "letter")
			body = bytes.ReplaceAll(body, []byte(`:"`+letter), []byte(`:"`+escapes[letter]))
		}
		q, err := query.Compile(wire.Search{Q: rapid.StringOfN(rapid.SampledFrom([]rune("abk1.éi/")), 1, 3, -1).Draw(t, "word")})
		if err != nil {
			t.Fatal(err)
		}
		may, _ := q.MayHold(body, nil)
		if !may {
			passed++
		}
		if holds := query.ReadContent(body).Holds(q.Words); holds && !may {
			t.Fatalf("%q are in %s, and it was passed over", q.Words, body)
		}
	})
	if passed == 0 {
		t.Error("no body was ever passed over")
	}
}
