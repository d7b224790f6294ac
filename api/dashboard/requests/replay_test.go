package requests

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSONBecomesPython(t *testing.T) {
	got := pythonLiteral(`{"true":[true,false,null,-1e5],"a\/\ud83d\ude00":"it's \"null\"\n"}`)
	want := "{\n  \"true\": [\n    True,\n    False,\n    None,\n    -1e5\n  ],\n" +
		"  \"a/\U0001F600\": \"it's \\\"null\\\"\\n\"\n}"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	command := replayCurl("http://a", json.RawMessage(`{"a":"it's"}`))
	if !strings.HasSuffix(command, `-d '{"a":"it'\''s"}'`) {
		t.Error(command)
	}
}
