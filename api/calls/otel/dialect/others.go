package dialect

import "strings"

// others are libraries with a few attributes each: MLflow and Genkit.
var others = Dialect{
	Name: "MLflow, Genkit",
	Table: []Attribute{
		{"mlflow.spanType", Decides, ""},
		{"genkit:metadata:subtype", Decides, ""},
		{"genkit:type", Decides, ""},
		{"genkit:name", Provider, ""}, // googleai/gemini-2.5-flash
		{"mlflow.spanInputs", ShownInput, ""},
		{"mlflow.spanOutputs", ShownOutput, ""},
		{"genkit:output", UsageWithin, "raw.usage"},
		{"genkit:output", UsageWithin, "raw.usageMetadata"},
		{"genkit:output", UsageWithin, "usage"},
		{"genkit:input", ShownInput, ""},
		{"genkit:output", ShownOutput, ""},
		{"tool.input", ShownInput, ""},
		{"tool.output", ShownOutput, ""},
	},
	Input:  []Source{{"genkit:input", GenkitRequest}, {"mlflow.spanInputs", Anything}},
	Output: []Source{{"genkit:output", GenkitResponse}, {"mlflow.spanOutputs", Anything}},
}

// mlflowKinds are the kinds of mlflow.spanType.
var mlflowKinds = map[string]Kind{
	"chat_model": Call, "llm": Call, "embedding": Embedding, "agent": Agent, "tool": Tool,
	"retriever": Retriever, "reranker": Retriever, "chain": Chain, "parser": Chain,
}

// genkitKinds are the kinds of genkit:metadata:subtype, of an action.
var genkitKinds = map[string]Kind{
	"model": Call, "background-model": Call, "embedder": Embedding, "tool": Tool, "tool.v2": Tool,
	"retriever": Retriever, "reranker": Retriever, "indexer": Retriever, "evaluator": Evaluator,
}

// othersKind takes what Genkit does besides actions for steps: they repeat the content of the calls in them.
func othersKind(s Span) Kind {
	if kind := kindOf(s.Text("genkit:metadata:subtype"), genkitKinds); kind != "" {
		return kind
	}
	if s.Text("genkit:type") != "" {
		return Chain
	}

	return kindOf(strings.Trim(s.Text("mlflow.spanType"), `"`), mlflowKinds)
}
