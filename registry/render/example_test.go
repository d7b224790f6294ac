package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"

	"promptspool/registry/render"
)

// Fill in a chat template, and make the arguments for Anthropic's client.
func Example() {
	blueprint, faults := render.Check(json.RawMessage(`{"type": "chat", "messages": [
		{"role": "system", "content": "Be brief."},
		{"role": "user", "content": "Say hello to {name}."}]}`))
	if len(faults) > 0 {
		fmt.Println(faults)
		return
	}
	metadata := json.RawMessage(`{"model": {"provider": "openai", "name": "gpt-4o-mini"}}`)
	prepared, err := render.Prepare(blueprint, metadata)
	if err != nil {
		fmt.Println(err)
		return
	}

	kwargs, warnings, err := prepared.Kwargs(render.Call{
		Provider:  "anthropic",
		Model:     "claude-3-5-haiku-latest",
		Variables: map[string]json.RawMessage{"name": json.RawMessage(`"Ann"`)},
	})
	if err != nil || len(warnings) > 0 {
		fmt.Println(warnings, err)
	}
	var lines bytes.Buffer
	_ = json.Indent(&lines, kwargs, "", " ")
	fmt.Println(lines.String())
	// Output:
	// {
	//  "model": "claude-3-5-haiku-latest",
	//  "max_tokens": 4096,
	//  "system": "Be brief.",
	//  "messages": [
	//   {
	//    "role": "user",
	//    "content": [
	//     {
	//      "type": "text",
	//      "text": "Say hello to Ann."
	//     }
	//    ]
	//   }
	//  ]
	// }
}
