package otel

import (
	"strings"

	"promptspool/api/calls/otel/dialect"
)

// providers maps the dialects' names of providers to those of the hosted service, which
// prices know.
var providers = map[string]string{
	"azure": "openai.azure", "azure-openai": "openai.azure", "az.ai.openai": "openai.azure",
	"azure.ai.openai": "openai.azure", "azure_openai": "openai.azure",
	"az.ai.inference": "azure.ai.inference",
	"gemini":          "google", "gcp.gemini": "google", "gcp.gen_ai": "google", "gcp.vertex.agent": "google",
	"google_genai": "google", "googleai": "google", "google-generative-ai": "google", "generative-ai": "google",
	"vertex_ai": "vertexai", "gcp.vertex_ai": "vertexai", "google.vertex": "vertexai", "google_vertexai": "vertexai",
	"aws": "amazon.bedrock", "aws.bedrock": "amazon.bedrock", "aws_bedrock": "amazon.bedrock",
	"amazon-bedrock": "amazon.bedrock", "amazon_bedrock": "amazon.bedrock", "bedrock": "amazon.bedrock",
	"mistral_ai": "mistral", "mistralai": "mistral", "x_ai": "xai", "moonshot_ai": "moonshot",
}

// frameworks call models of others: as a provider they say nothing.
var frameworks = map[string]bool{
	"langchain": true, "langgraph": true, "llamaindex": true, "litellm": true, "spring_ai": true,
	"strands-agents": true,
}

// apis are what the Vercel AI SDK and others write after the provider.
var apis = []string{
	".chat", ".responses", ".completion", ".completions", ".embedding", ".embeddings", ".messages", ".image",
	".generative-ai", ".transcription", ".speech",
}

// provider returns the provider in lower case, under the name that the hosted service has
// for it.
func (s *span) provider() string {
	found := ""
	for _, l := range s.tables.byMeaning[dialect.Provider] {
		name := strings.ToLower(s.own.text(l.Key))
		if found == "" && !frameworks[name] {
			found = name
		}
	}

	if found == "" {
		// LangChain's own word, which OpenInference has in the metadata.
		found = strings.ToLower(s.own.get("metadata").inner().texts("ls_provider"))
	}

	// Genkit's are followed by the model.
	found, _, _ = strings.Cut(found, "/")
	for _, api := range apis {
		found = strings.TrimSuffix(found, api)
	}
	if name, ok := providers[found]; ok {
		found = name
	}
	if found == "" {
		found = byModel(s.find(dialect.ResponseModel, dialect.RequestModel).text())
	}

	return byAddress(found, s.own.text("server.address"))
}

// families are beginnings of models' names, and who makes them.
var families = []struct{ begins, provider string }{
	{"gpt-", "openai"}, {"chatgpt-", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"},
	{"text-embedding-", "openai"}, {"davinci-", "openai"}, {"dall-e", "openai"}, {"claude-", "anthropic"},
	{"gemini-", "google"}, {"gemma-", "google"}, {"mistral-", "mistral"}, {"mixtral-", "mistral"},
	{"codestral-", "mistral"}, {"command-", "cohere"}, {"deepseek-", "deepseek"}, {"grok-", "xai"},
	{"anthropic.", bedrock}, {"amazon.", bedrock}, {"meta.", bedrock}, {"us.", bedrock}, {"eu.", bedrock},
	{"apac.", bedrock}, {"global.", bedrock},
}

// bedrock sells models of others, whose names it begins with their makers or with a region.
const bedrock = "amazon.bedrock"

// unknownProvider is that of a call whose span does not tell. Without a name the function's
// would be taken for one.
const unknownProvider = "unknown"

// byModel returns who makes a model: Langfuse's spans name no provider.
func byModel(model string) string {
	for _, f := range families {
		if strings.HasPrefix(strings.ToLower(model), f.begins) {
			return f.provider
		}
	}

	return unknownProvider
}

// byAddress returns the provider whose models another one sells at an address.
func byAddress(name, address string) string {
	switch {
	case name == "openai" && (strings.HasSuffix(address, ".openai.azure.com") ||
		strings.HasSuffix(address, ".cognitiveservices.azure.com")):
		return "openai.azure"
	case name == "anthropic" && strings.HasSuffix(address, "aiplatform.googleapis.com"):
		return "vertexai"
	}

	return name
}
