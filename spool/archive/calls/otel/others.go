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

func othersKind(s *span) Kind {
	switch strings.Trim(s.own.text("mlflow.spanType"), `"`) {
	case "CHAT_MODEL", "LLM":
		return KindCall
	case "EMBEDDING":
		return KindEmbedding
	case "AGENT":
		return KindAgent
	case "TOOL":
		return KindTool
	case "RETRIEVER", "RERANKER":
		return KindRetriever
	case "CHAIN", "PARSER":
		return KindChain
	}
	if s.own.text("genkit:metadata:subtype") == "model" {
		return KindCall
	}

	return ""
}
