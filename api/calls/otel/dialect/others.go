package dialect

import "strings"

// others are libraries with a few attributes each: MLflow and Genkit.
var others = Dialect{
	Name: "MLflow, Genkit",
	Table: []Attribute{
		{"mlflow.spanType", Decides, ""},
		{"genkit:metadata:subtype", Decides, ""},
		{"mlflow.spanInputs", ShownInput, ""},
		{"mlflow.spanOutputs", ShownOutput, ""},
		{"genkit:input", ShownInput, ""},
		{"genkit:output", ShownOutput, ""},
		{"tool.input", ShownInput, ""},
		{"tool.output", ShownOutput, ""},
	},
	Input:  []Source{{"genkit:input", Anything}, {"mlflow.spanInputs", Anything}},
	Output: []Source{{"genkit:output", Anything}, {"mlflow.spanOutputs", Anything}},
}

// mlflowKinds are the kinds of mlflow.spanType.
var mlflowKinds = map[string]Kind{
	"chat_model": Call, "llm": Call, "embedding": Embedding, "agent": Agent, "tool": Tool,
	"retriever": Retriever, "reranker": Retriever, "chain": Chain, "parser": Chain,
}

func othersKind(s Span) Kind {
	if s.Text("genkit:metadata:subtype") == "model" {
		return Call
	}

	return kindOf(strings.Trim(s.Text("mlflow.spanType"), `"`), mlflowKinds)
}
