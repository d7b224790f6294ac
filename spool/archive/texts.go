package archive

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
)

// texts are all texts that went into a call and came out of it, a line each.
func texts(body []byte) (in, out string) {
	for _, name := range []string{"args", "kwargs", "prompt_input_variables"} {
		in += linesOf(body, name)
	}
	return strings.TrimSuffix(in, "\n"), strings.TrimSuffix(linesOf(body, "request_response"), "\n")
}

func linesOf(body []byte, name string) string {
	raw, ok := wire.Lookup(body, name)
	var v any
	if !ok || json.Unmarshal(raw, &v) != nil {
		return ""
	}
	var b strings.Builder
	appendTexts(&b, v)
	return b.String()
}

func appendTexts(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		b.WriteString(v)
		b.WriteByte('\n')
	case []any:
		for _, part := range v {
			appendTexts(b, part)
		}
	case map[string]any:
		for _, part := range v {
			appendTexts(b, part)
		}
	}
}
