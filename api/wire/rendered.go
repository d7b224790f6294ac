package wire

import (
	"encoding/json"
	"strconv"

	"promptspool/api/wire/jsonscan"
)

// AppendJSON appends t as encoding/json would write it, but with the raw members copied as they are: they were checked when they were
// published or made, and to look at them again took more time than all the rest of a fetch.
func (t *RenderedTemplate) AppendJSON(b []byte) []byte {
	b = append(b, `{"success":`...)
	b = strconv.AppendBool(b, t.Success)
	b = strconv.AppendInt(append(b, `,"id":`...), t.ID, 10)
	b = jsonscan.AppendString(append(b, `,"prompt_name":`...), t.Name)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(t.Version), 10)
	b = strconv.AppendInt(append(b, `,"workspace_id":`...), t.WorkspaceID, 10)
	b = appendList(append(b, `,"tags":`...), t.Tags, jsonscan.AppendString)
	b = appendText(append(b, `,"commit_message":`...), t.CommitMessage)
	b = appendRaw(append(b, `,"metadata":`...), t.Metadata)
	b = appendRaw(append(b, `,"prompt_template":`...), t.Blueprint)
	b = appendRaw(append(b, `,"llm_kwargs":`...), t.LLMKwargs)
	b = appendProviderBaseURL(append(b, `,"provider_base_url":`...), t.ProviderBaseURL)
	b = appendList(append(b, `,"snippets":`...), t.Snippets, appendSnippet)
	b = appendText(append(b, `,"warning":`...), t.Warning)
	return append(b, '}')
}

func appendSnippet(b []byte, s UsedSnippet) []byte {
	b = jsonscan.AppendString(append(b, `{"prompt_name":`...), s.Name)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(s.Version), 10)
	b = appendText(append(b, `,"label":`...), s.Label)
	return append(b, '}')
}

func appendList[T any](b []byte, list []T, appendOne func([]byte, T) []byte) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendOne(b, e)
	}
	return append(b, ']')
}

func appendText(b []byte, text *string) []byte {
	if text == nil {
		return append(b, "null"...)
	}
	return jsonscan.AppendString(b, *text)
}

func appendRaw(b []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(b, "null"...)
	}
	return append(b, raw...)
}
