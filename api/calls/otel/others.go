package otel

import "strings"

// others are libraries with a few attributes of their own: MLflow and Genkit.
var others = dialect{
	name: "MLflow, Genkit",
	table: []attribute{
		{"mlflow.spanType", decides, ""},
		{"genkit:metadata:subtype", decides, ""},
		{"mlflow.spanInputs", shownInput, ""},
		{"mlflow.spanOutputs", shownOutput, ""},
		{"genkit:input", shownInput, ""},
		{"genkit:output", shownOutput, ""},
		{"tool.input", shownInput, ""},
		{"tool.output", shownOutput, ""},
	},
	input:  []source{{"genkit:input", anything}, {"mlflow.spanInputs", anything}},
	output: []source{{"genkit:output", anything}, {"mlflow.spanOutputs", anything}},
}

// mlflowKinds are the kinds of mlflow.spanType.
var mlflowKinds = map[string]Kind{
	"chat_model": KindCall, "llm": KindCall, "embedding": KindEmbedding, "agent": KindAgent, "tool": KindTool,
	"retriever": KindRetriever, "reranker": KindRetriever, "chain": KindChain, "parser": KindChain,
}

func othersKind(s *span) Kind {
	if s.own.text("genkit:metadata:subtype") == "model" {
		return KindCall
	}

	return kinds(strings.Trim(s.own.text("mlflow.spanType"), `"`), mlflowKinds)
}
