package api

import (
	"strings"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// misdirected is a call that belongs to another service, and the answer that its client
// understands.
type misdirected struct {
	endings []string // of the path
	message string
	body    func(message string) map[string]any // in the form of that service's errors
}

const (
	noModel = "promptspool records calls to models, it does not relay them. Leave the base URL of this client " +
		"as its provider has it, and log each call when it is answered: with POST /rest/track-request, or over " +
		"OpenTelemetry. The pages /docs/log-python, /docs/log-javascript and /docs/log-opentelemetry of this " +
		"address show how."

	notOTLP = " does not take this format. Send OpenTelemetry: "
)

// misdirections are the paths at which other services' clients call this one by mistake.
var misdirections = []misdirected{
	{
		endings: []string{"/messages", "/messages/count_tokens", "/messages/batches", "/v1/complete"},
		message: noModel,
		body:    anthropicError,
	},
	{
		endings: []string{
			"/chat/completions", "/completions", "/responses", "/embeddings", "/v1/models", "/moderations",
			"/images/generations", "/images/edits", "/audio/speech", "/audio/transcriptions",
		},
		message: noModel,
		body:    openAIError,
	},
	{
		endings: []string{":generateContent", ":streamGenerateContent", ":embedContent", ":countTokens"},
		message: noModel,
		body:    googleError,
	},
	{
		endings: []string{"/api/public/ingestion"},
		message: "promptspool" + notOTLP + "Langfuse's SDKs do from version 3 (Python) and 4 (JavaScript) on, with " +
			"the same base URL. The page /docs/log-opentelemetry of this address shows what to set.",
		body: langfuseError,
	},
	{
		endings: []string{"/runs", "/runs/batch", "/runs/multipart"},
		message: "promptspool" + notOTLP + "LangSmith's SDKs do with LANGSMITH_OTEL_ENABLED=true and " +
			"LANGSMITH_OTEL_ONLY=true. The page /docs/log-opentelemetry of this address shows what to set.",
		body: langSmithError,
	},
}

// The bodies also have success and message, as all our answers.

func openAIError(message string) map[string]any {
	inner := map[string]any{
		"message": message,
		"type":    "invalid_request_error",
		"param":   nil,
		"code":    wire.CodeNotFound,
	}

	return map[string]any{"success": false, "message": message, "error": inner}
}

func anthropicError(message string) map[string]any {
	inner := map[string]any{"type": "not_found_error", "message": message}
	return map[string]any{"success": false, "message": message, "type": "error", "error": inner}
}

func googleError(message string) map[string]any {
	inner := map[string]any{"code": 404, "message": message, "status": "NOT_FOUND"}
	return map[string]any{"success": false, "message": message, "error": inner}
}

func langfuseError(message string) map[string]any {
	return map[string]any{"success": false, "message": message, "error": "LangfuseNotFoundError"}
}

func langSmithError(message string) map[string]any {
	return map[string]any{"success": false, "message": message, "error": wire.CodeNotFound, "detail": message}
}

// answerMisdirected answers a call without a route in the form of the service that it was meant
// for, and reports whether it knows one.
func answerMisdirected(ctx *fasthttp.RequestCtx) bool {
	path := strings.TrimRight(string(ctx.Path()), "/")
	for _, m := range misdirections {
		for _, ending := range m.endings {
			if strings.HasSuffix(path, ending) {
				edge.WriteJSON(ctx, 404, m.body(m.message))
				return true
			}
		}
	}

	return false
}
