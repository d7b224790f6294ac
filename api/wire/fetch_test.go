package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestARenderedTemplateIsWrittenAsEncodingJSONWouldDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Ptr(rapid.String(), true)
		raw := rapid.SampledFrom([]json.RawMessage{
			nil,
			json.RawMessage(`null`),
			json.RawMessage(`{"a":"<b>","c":[1,2.50]}`),
		})

		r := RenderedTemplate{
			Success:       rapid.Bool().Draw(t, "success"),
			ID:            rapid.Int64().Draw(t, "id"),
			Name:          rapid.String().Draw(t, "name"),
			Version:       rapid.Int().Draw(t, "version"),
			WorkspaceID:   rapid.Int64().Draw(t, "workspace"),
			Tags:          rapid.SliceOf(rapid.String()).Draw(t, "tags"),
			CommitMessage: text.Draw(t, "message"),
			Metadata:      raw.Draw(t, "metadata"),
			Blueprint:     raw.Draw(t, "blueprint"),
			LLMKwargs:     raw.Draw(t, "kwargs"),
			ProviderBaseURL: ProviderBaseURLs{
				"a": rapid.String().Draw(t, "url"),
				"b": "x",
			}.Of(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "provider")),
			Warning: text.Draw(t, "warning"),
			Cache:   "hit",
		}
		for range rapid.IntRange(0, 3).Draw(t, "snippets") {
			r.Snippets = append(r.Snippets, UsedSnippet{
				Name:    rapid.String().Draw(t, "snippet"),
				Version: 3,
				Label:   text.Draw(t, "label"),
			})
		}

		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}

		got := r.AppendJSON([]byte("x"))
		if string(got) != "x"+string(bytes.TrimSuffix(want.Bytes(), []byte("\n"))) {
			t.Errorf("got  %s\nwant %s", got, want.Bytes())
		}
	})
}
