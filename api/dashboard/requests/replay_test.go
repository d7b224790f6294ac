package requests

import (
	"strings"
	"testing"
)

func TestJSONBecomesPython(t *testing.T) {
	got := pythonText(`{"true":[null],"a\/\ud83d":"it's ''' \"n\"\n"}`)
	want := "r'''{\n  \"true\": [\n    null\n  ],\n" +
		`  "a\/\ud83d": "it\u0027s \u0027\u0027\u0027 \"n\"\n"` + "\n}'''"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	command, _ := replay{URL: "http://a", Body: `{"a":"it's"}`}.program("curl")
	if !strings.HasSuffix(command, `-d '{"a":"it'\''s"}'`) {
		t.Error(command)
	}
}
