package api

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// misdirected is a request that belongs to another service, and the answer that its client
// understands.
type misdirected struct {
	endings []string // of the path
	message string
	body    string // in the form of that service's errors
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

// The forms of those services' errors, with a message in JSON in its places. They also have success
// and message, as all our answers.
const (
	openAIError = `{"success":false,"message":%[1]s,"error":` +
		`{"message":%[1]s,"type":"invalid_request_error","param":null,"code":"not_found"}}`
	anthropicError = `{"success":false,"message":%[1]s,"type":"error","error":` +
		`{"type":"not_found_error","message":%[1]s}}`
	googleError    = `{"success":false,"message":%[1]s,"error":{"code":404,"message":%[1]s,"status":"NOT_FOUND"}}`
	langfuseError  = `{"success":false,"message":%[1]s,"error":"LangfuseNotFoundError"}`
	langSmithError = `{"success":false,"message":%[1]s,"error":"not_found","detail":%[1]s}`
)

// answerMisdirected answers a request without a route in the form of the service that it was meant
// for, and reports whether it knows one.
func answerMisdirected(ctx *fasthttp.RequestCtx) bool {
	path := strings.TrimRight(string(ctx.Path()), "/")
	for _, m := range misdirections {
		for _, ending := range m.endings {
			if strings.HasSuffix(path, ending) {
				body := fmt.Sprintf(m.body, jsonscan.AppendString(nil, m.message))
				edge.WriteJSON(ctx, 404, json.RawMessage(body))
				return true
			}
		}
	}

	return false
}

// refuseGRPC tells a client of gRPC, such as an exporter with its default protocol, what to set.
func (a *API) refuseGRPC(ctx *fasthttp.RequestCtx) {
	settings := "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and OTEL_EXPORTER_OTLP_ENDPOINT=http://" +
		ctx.LocalAddr().String() + a.c.BasePath
	a.c.Metrics.OTLPRefused.WithLabelValues("grpc").Inc()
	if a.c.Drops.add("", wire.Drop{Count: 1, What: "gRPC connection", Why: "set " + settings}) {
		a.c.Logger.Warn("A client speaks gRPC, which is not served. Nothing that it sends is kept.",
			"from", ctx.RemoteIP(), "set", settings)
	}
	ctx.SetStatusCode(fasthttp.StatusHTTPVersionNotSupported) // as it is counted
	a.conns.RefuseHTTP2(ctx, "promptspool takes OpenTelemetry over HTTP, not over gRPC: set "+settings)
}
