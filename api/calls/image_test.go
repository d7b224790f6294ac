package calls

import (
	"fmt"
	"testing"
)

func TestAnImageIsReadOutOfEveryProvidersForm(t *testing.T) {
	const want = "data:image/png;base64,iVBORw0KGgo="
	for name, part := range map[string]string{
		"openai":       `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`,
		"responses":    `{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}`,
		"anthropic":    `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`,
		"gemini":       `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}`,
		"google-genai": `{"inline_data":{"mime_type":"image/png","data":"iVBORw0KGgo="}}`,
		"bedrock":      `{"image":{"format":"png","source":{"bytes":"iVBORw0KGgo="}}}`,
		"conventions":  `{"type":"blob","modality":"image","mime_type":"image/png","content":"iVBORw0KGgo="}`,
		"the AI SDK":   `{"type":"image","image":"iVBORw0KGgo=","mediaType":"image/png"}`,
		"its files":    `{"type":"file","data":"iVBORw0KGgo=","mediaType":"image/png","filename":"a.png"}`,
		"llamaindex":   `{"block_type":"image","image":"iVBORw0KGgo=","image_mimetype":"image/png"}`,
		"genkit":       `{"media":{"contentType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}}`,
		"mcp":          `{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}`,
		"a blueprint":  `{"type":"media","media":{"type":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}}`,
	} {
		if got := imageOf(t, part); got != want {
			t.Errorf("%s: got the image %q, want %q", name, got, want)
		}
	}
	for name, part := range map[string]string{
		"an address":     `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`,
		"drawn by text":  `{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,PHN2Zy8+"}}`,
		"a page":         `{"type":"image_url","image_url":{"url":"data:application/xhtml+xml;base64,PGI+"}}`,
		"no base64":      `{"type":"image_url","image_url":{"url":"data:image/png;base64,\"onerror=alert(1)"}}`,
		"no bytes":       `{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}`,
		"a sound":        `{"inlineData":{"mimeType":"audio/wav","data":"AAAA"}}`,
		"something else": `{"type":"image_url","image_url":[1]}`,
	} {
		if got := imageOf(t, part); got != "" {
			t.Errorf("%s is read as an image: %q", name, got)
		}
	}
}

// imageOf returns the image of a message that has a text and then the part.
func imageOf(t *testing.T, part string) string {
	t.Helper()

	call := Read(fmt.Appendf(nil, `{"kwargs":{"model":"m","messages":[{"role":"user",`+
		`"content":[{"type":"text","text":"Look."},%s]}]}}`, part))
	if len(call.Input) != 1 || len(call.Input[0].Parts) != 2 || call.Input[0].Parts[1].Kind != PartMedia {
		t.Fatalf("%s is read as %+v", part, call.Input)
	}

	return call.Input[0].Parts[1].Image()
}
