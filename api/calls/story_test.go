package calls_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"promptspool/api/calls"
)

// sent returns a call that sends messages, each written as "role: text", and gets an answer.
func sent(answer string, messages ...string) *calls.Call {
	c := &calls.Call{}
	for _, text := range messages {
		c.Input = append(c.Input, spoken(text))
	}
	if answer != "" {
		c.Output = []calls.Message{spoken("assistant: " + answer)}
	}

	return c
}

func spoken(text string) calls.Message {
	role, said, _ := strings.Cut(text, ": ")
	// A call of a tool is written with an arrow.
	if name, isCall := strings.CutPrefix(said, "-> "); isCall {
		return calls.Message{Role: role, ToolCalls: []calls.ToolCall{{Name: name, Arguments: `{"of": 1}`}}}
	}

	return calls.Message{Role: role, Parts: []calls.Part{{Kind: calls.PartText, Text: said}}}
}

// What readers of a session see of each call, in the ways in which apps send conversations.
func TestEachCallOfASessionShowsWhatItAdded(t *testing.T) {
	type call struct {
		*calls.Call
		want []int
	}
	for name, story := range map[string][]call{
		"the whole conversation is sent again": {
			{sent("hello", "system: be kind", "user: hi"), []int{0, 1}},
			{sent("fine", "system: be kind", "user: hi", "assistant: hello", "user: how are you"), []int{3}},
		},
		"a system prompt changes, and changes back": {
			{sent("hello", "system: it is 10:00", "user: hi"), []int{0, 1}},
			{sent("fine", "system: it is 10:01", "user: hi", "assistant: hello", "user: and you"), []int{0, 3}},
			{sent("", "system: it is 10:00", "user: hi", "assistant: hello", "user: and you"), nil},
		},
		"a triage and an agent read the same question": {
			{sent("orders", "system: choose", "user: where is it"), []int{0, 1}},
			{sent("-> look", "system: answer", "user: where is it"), []int{0}},
			{sent("it is here", "system: answer", "user: where is it", "assistant: -> look", "tool: here"), []int{3}},
			{sent("other", "system: choose", "user: where is it", "assistant: it is here", "user: thanks"), []int{3}},
		},
		"an agent asks another one, which has its own conversation": {
			{sent("-> ask", "system: lead", "user: plan"), []int{0, 1}},
			{sent("a list", "system: help", "user: list it"), []int{0, 1}},
			{sent("done", "system: lead", "user: plan", "assistant: -> ask", "tool: a list"), []int{3}},
		},
		"a call fails and is sent again": {
			{sent("", "user: hi"), []int{0}},
			{sent("hello", "user: hi"), nil},
		},
		"only the last messages are sent": {
			{sent("1", "system: count", "user: one"), []int{0, 1}},
			{sent("2", "system: count", "user: one", "assistant: 1", "user: next"), []int{3}},
			{sent("3", "system: count", "assistant: 1", "user: next", "assistant: 2", "user: next"), []int{4}},
		},
		"what was said is summed up": {
			{sent("1", "user: one"), []int{0}},
			{sent("2", "user: so far: one", "assistant: 1", "user: two"), []int{0, 2}},
		},
		"a question is written anew": {
			{sent("1", "user: one"), []int{0}},
			{sent("2", "user: one", "assistant: 1", "user: two"), []int{2}},
			{sent("3", "user: one", "assistant: 1", "user: three"), []int{2}},
		},
		"the provider keeps the conversation": {
			{sent("1", "user: one"), []int{0}},
			{sent("2", "user: two"), []int{0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := calls.NewStory()
			for i, c := range story {
				if got := s.Next(c.Call); !slices.Equal(got, c.want) {
					t.Errorf("call %d added %v, want %v", i+1, got, c.want)
				}
			}
		})
	}
}

// An answer comes back in the form of the next request: without thoughts, in several items,
// with arguments as an object.
func TestAnAnswerIsKnownInWhateverFormItIsSentBack(t *testing.T) {
	for name, bodies := range map[string][2]string{
		"OpenAI's responses": {
			`{"kwargs": {"model": "gpt-5", "input": "Weather?"}, "request_response": {"output": [
				{"type": "reasoning", "summary": [{"type": "summary_text", "text": "They ask."}]},
				{"type": "message", "role": "assistant",
					"content": [{"type": "output_text", "text": "Let me look."}]},
				{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather",
					"arguments": "{\"in\":\"Oslo\"}"}]}}`,
			`{"kwargs": {"model": "gpt-5", "input": [{"role": "user", "content": "Weather?"},
				{"role": "assistant", "content": "Let me look.\n"},
				{"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"in\": \"Oslo\"}"},
				{"type": "function_call_output", "call_id": "c1", "output": "rain"}]}}`,
		},
		"Anthropic": {
			`{"kwargs": {"model": "claude", "messages": [{"role": "user", "content": "Weather?"}]},
				"request_response": {"role": "assistant", "content": [{"type": "thinking", "thinking": "They ask."},
				{"type": "text", "text": "Let me look."},
				{"type": "tool_use", "id": "t1", "name": "weather", "input": {"in": "Oslo"}}]}}`,
			`{"kwargs": {"model": "claude", "messages": [{"role": "user", "content": [
					{"type": "text", "text": "Weather?", "cache_control": {"type": "ephemeral"}}]},
				{"role": "assistant", "content": [{"type": "text", "text": "Let me look."},
				{"type": "tool_use", "id": "t1", "name": "weather", "input": {"in":"Oslo"}}]},
				{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "rain"}]}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := calls.NewStory()
			first, second := calls.Read(json.RawMessage(bodies[0])), calls.Read(json.RawMessage(bodies[1]))
			s.Next(&first)
			added := s.Next(&second)
			if len(added) != 1 || second.Input[added[0]].Text() != "rain" {
				t.Errorf("added %v of %+v, want what the tool answered", added, second.Input)
			}
		})
	}
}

// Whatever apps leave out, repeat or rewrite, a reader finds every message. Of conversations that
// only grow, each call adds its last one.
func TestNoMessageOfASessionIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := calls.NewStory()
		shown := map[string]bool{}
		threads := make([][]string, rapid.IntRange(1, 3).Draw(t, "threads"))
		kinds := []string{"says", "forgets", "repeats", "edits"}[:rapid.SampledFrom([]int{1, 4}).Draw(t, "kinds")]

		for turn := range rapid.IntRange(1, 12).Draw(t, "turns") {
			who := rapid.IntRange(0, len(threads)-1).Draw(t, "who")
			said := slices.Clone(threads[who])
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			switch {
			case kind == "says" || len(said) == 0:
				said = append(said, fmt.Sprintf("user: %d of %d", turn, who))
			case kind == "forgets":
				said = said[rapid.IntRange(0, len(said)-1).Draw(t, "forgotten"):]
			case kind == "edits":
				edit := rapid.SampledFrom([]string{"user: yes", "tool: cleared", "assistant: so far"}).Draw(t, "edit")
				said[rapid.IntRange(0, len(said)-1).Draw(t, "edited")] = edit
			}

			prompt := fmt.Sprintf("system: %d", rapid.IntRange(0, 2).Draw(t, "prompt"))
			answer := fmt.Sprintf("answer %d", turn)
			all := append([]string{prompt}, said...)
			added := s.Next(sent(answer, all...))
			want := []int{len(said)}
			if !shown[prompt] {
				want = []int{0, len(said)}
			}
			if len(kinds) == 1 && !slices.Equal(added, want) {
				t.Fatalf("turn %d of %q added %v, want %v", turn, all, added, want)
			}
			for i, text := range all {
				if !slices.Contains(added, i) && !shown[text] {
					t.Fatalf("%q of turn %d is not shown anywhere", text, turn)
				}
				shown[text] = true
			}
			shown["assistant: "+answer] = true
			threads[who] = append(said, "assistant: "+answer)
		}
	})
}
