package otel

import "strings"

// pydantic is Pydantic AI, and Logfire around it. It follows the conventions.
var pydantic = dialect{
	name: "Pydantic AI",
	table: []attribute{
		{"operation.cost", price, ""},
		{"pydantic_ai.all_messages", shownInput, ""},
		{"all_messages_events", shownInput, ""},
		{"tool_arguments", shownInput, ""},
		{"final_result", shownOutput, ""},
		{"tool_response", shownOutput, ""},
		{"agent_name", metadata, "agent"},
	},
	input:  []source{{"events", pydanticIn}},
	output: []source{{"events", pydanticOut}},
}

// pydanticEvents reads the list of events that older versions have in one attribute.
func pydanticEvents(s *span, key string) []event {
	if !strings.HasPrefix(s.scope, "pydantic-ai") {
		return nil
	}

	var events []event
	for _, e := range s.own.get(key).inner().elements() {
		events = append(events, event{name: e.at("event.name").text(), body: e})
	}

	return events
}

func pydanticIn(s *span, key, _ string) conversation  { return inputEvents(pydanticEvents(s, key)) }
func pydanticOut(s *span, key, _ string) conversation { return outputEvents(pydanticEvents(s, key)) }
