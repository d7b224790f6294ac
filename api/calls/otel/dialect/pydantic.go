package dialect

// pydantic is Pydantic AI, and Logfire around it. It follows the conventions.
var pydantic = Dialect{
	Name: "Pydantic AI",
	Table: []Attribute{
		{"operation.cost", Price, ""},
		{"pydantic_ai.all_messages", ShownInput, ""},
		{"all_messages_events", ShownInput, ""},
		{"tool_arguments", ShownInput, ""},
		{"final_result", ShownOutput, ""},
		{"tool_response", ShownOutput, ""},
		{"agent_name", Metadata, "agent"},
	},
	Input:  []Source{{"events", EventList}},
	Output: []Source{{"events", EventList}},
}
