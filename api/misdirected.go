package api

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

const (
	noModel = "promptspool records calls to models, it does not relay them. Leave the base URL of this client " +
		"as its provider has it, and log each call when it is answered: with POST /rest/track-request, or over " +
		"OpenTelemetry. The pages /docs/log-python, /docs/log-javascript and /docs/log-opentelemetry of this " +
		"address show how."

	notOTLP = " does not take this format. Send OpenTelemetry: "
)

// misdirections are the paths at which other services' clients call this one by mistake.
var misdirections = []struct {
	endings []string // of the path
	message string
}{
	{
		endings: []string{
			// Anthropic, OpenAI, Google
			"/messages", "/messages/count_tokens", "/messages/batches", "/v1/complete",
			"/chat/completions", "/completions", "/responses", "/embeddings", "/v1/models", "/moderations",
			"/images/generations", "/images/edits", "/audio/speech", "/audio/transcriptions",
			":generateContent", ":streamGenerateContent", ":embedContent", ":countTokens",
		},
		message: noModel,
	},
	{
		endings: []string{"/api/public/ingestion"},
		message: "promptspool" + notOTLP + "Langfuse's SDKs do from version 3 (Python) and 4 (JavaScript) on, with " +
			"the same base URL. The page /docs/log-opentelemetry of this address shows what to set.",
	},
	{
		endings: []string{"/runs", "/runs/batch", "/runs/multipart"},
		message: "promptspool" + notOTLP + "LangSmith's SDKs do with LANGSMITH_OTEL_ENABLED=true and " +
			"LANGSMITH_OTEL_ONLY=true. The page /docs/log-opentelemetry of this address shows what to set.",
	},
}

// answerMisdirected answers a request without a route that was meant for another service, and reports
// whether it knows one. The answer has what the clients of any of them read of an error.
func answerMisdirected(ctx *fasthttp.RequestCtx) bool {
	path := strings.TrimRight(string(ctx.Path()), "/")
	for _, m := range misdirections {
		if !slices.ContainsFunc(m.endings, func(ending string) bool { return strings.HasSuffix(path, ending) }) {
			continue
		}
		edge.WriteJSON(ctx, 404, map[string]any{
			"success": false,
			"message": m.message,
			"detail":  m.message, // LangSmith's
			"type":    "error",   // Anthropic's
			"error": map[string]any{
				"message": m.message,
				"type":    "not_found_error",
				"param":   nil, // OpenAI's
				"code":    404,
				"status":  "NOT_FOUND", // Google's
			},
		})
		return true
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

// guard rejects what a web page in a browser could send to this listener. These are requests that
// the browser marks as coming from another site, and Host names of a page's own that resolve to
// us (DNS rebinding). Programs send neither.
func guard(ctx *fasthttp.RequestCtx, hosts []string) error {
	h := &ctx.Request.Header

	host := hostOnly(string(h.Host()))
	if host != "" && !isLoopback(host) && !slices.Contains(hosts, host) {
		return wire.Errorf(wire.CodeForbidden,
			"The Host name %.100q is not allowed here. Call this sidecar as localhost, "+
				"or allow the name with --allow-host.", host)
	}

	if site := string(h.PeekCanonical(siteHeader)); site != "" && site != "same-origin" && site != "none" {
		return wire.Errorf(wire.CodeForbidden, "Cross-site requests from a browser are refused.")
	}

	// Old browsers send no Sec-Fetch-Site, but an Origin with what can change something.
	if origin := string(h.PeekCanonical(originHeader)); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, string(h.Host())) {
			return wire.Errorf(wire.CodeForbidden, "Cross-site requests from a browser are refused.")
		}
	}

	return nil
}

// hostOnly returns an address in lower case, without its port and brackets.
func hostOnly(hostport string) string {
	return strings.ToLower(strings.TrimSuffix((&url.URL{Host: hostport}).Hostname(), "."))
}

func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}
