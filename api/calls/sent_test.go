package calls_test

import (
	"fmt"
	"strings"
	"testing"

	"promptspool/api/calls"
)

func TestWhatACallWasSentWith(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"OpenAI": {`{"kwargs":{"model":"m","messages":[],"temperature":0.2,"stop":["a", "b"],"stream":false,` +
			`"user":"","tools":[{"type":"function","function":{"name":"get","description":"Gets."}},` +
			`{"type":"web_search"}]}}`,
			`temperature=0.2 stop=["a","b"] stream=false | get:Gets. web_search:`},
		"Anthropic": {`{"kwargs":{"system":"s","max_tokens":10,"tools":[{"name":"get","input_schema":{}}]}}`,
			`max_tokens=10 | get:`},
		"Google": {`{"kwargs":{"contents":[],"config":{"temperature":1,"system_instruction":"s",` +
			`"tools":[{"function_declarations":[{"name":"a"},{"name":"b"}]}]}}}`, `temperature=1 | a: b:`},
		"Bedrock": {`{"kwargs":{"inferenceConfig":{"topP":0.5},"toolConfig":{"tools":[{"toolSpec":{"name":"get"}}]}}}`,
			`topP=0.5 | get:`},
		"a blueprint": {`{"input":{"messages":[],"tools":[{"name":"get"}]},"output":{},"parameters":{"seed":7}}`,
			`seed=7 | get:`},
		"neither": {`{"kwargs":[1]}`, ` |`},
		"no JSON": {`{`, ` |`},
	} {
		sent := calls.ReadSent([]byte(tt.body))
		var parts []string
		for _, p := range sent.Parameters {
			parts = append(parts, p.Name+"="+p.Value)
		}
		got := strings.Join(parts, " ") + " |"
		for _, tool := range sent.Tools {
			got += fmt.Sprintf(" %s:%s", tool.Name, tool.Description)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestReadingWhatACallWasSentWithCostsInProportion(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(`{"kwargs":` + strings.Repeat(`{"config":`, 200) + `[` + repeated(n, `"abcdefgh"`) + `]` +
			strings.Repeat("}", 200) + `}`)
	}
	cost := func(n int) uint64 {
		body := nested(n)
		before := allocated()
		calls.ReadSent(body)
		return allocated() - before
	}

	if once, fourfold := cost(10_000), cost(40_000); fourfold > 8*once || fourfold > 10<<20 {
		t.Errorf("four times as many allocate %d bytes, want about four times %d", fourfold, once)
	}
}
