package otel

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/otlp"
	"promptspool/api/wire"
)

// Span is what a stored span says.
type Span struct {
	Kind     dialect.Kind
	TraceID  string // in lower-case hex
	SpanID   string
	ParentID string // "" for a root
	Name     string
	Start    time.Time // zero if senseless
	End      time.Time

	Status       string // SUCCESS, WARNING or ERROR
	ErrorType    string
	ErrorMessage string

	// Input and Output are those of a span that is not a call, as a person reads them.
	Input, Output string

	Tags     []string
	Metadata map[string]string // with the user, the session, the environment and the service
	Prompt   wire.PromptLink
	Scores   []wire.Score // evaluations that are part of the span, or were joined to it

	// Price is a number of US dollars that the library computed; nil if it did not.
	Price json.RawMessage

	// LoggedAs is set if an SDK also logs this call by /track-request: that call has this
	// span_id. The span is then not a call itself.
	LoggedAs string

	// Agent is set if a coding agent sent it, which has several for a call, each of another name.
	Agent bool `json:"-"`

	// Of the track-request that logs the same call; see Request.
	provider         string
	kwargs, response map[string]any // nil if the span is not a model call
	endless          bool           // the span ends later than the call
}

// IsCall reports whether the span is a model call.
func (s *Span) IsCall() bool { return s.kwargs != nil }

// span is a span that is being read.
type span struct {
	body     attributes // its members
	own      attributes
	resource attributes
	scope    string
	tables   *tables
	events   []event // its own and those of its log records, in their order
}

// IsSpan reports whether the body of an event is a stored span, or a log record in its place.
func IsSpan(object wire.Object) bool {
	raw, ok := object.Get("span")
	if !ok {
		raw, ok = object.Get("log")
	}
	return ok && raw[0] == '{' && object.Has("resource") && !object.Has("request_response") && !object.Has("kwargs")
}

// ReadObject reads a stored span. It is an object with the resource, the scope and the span in
// the form of OTLP/JSON, and perhaps log records; see Join. A log record with the details of a call
// is read like the span that it should have.
func ReadObject(object wire.Object) Span {
	member := func(name string) value {
		v, _ := object.Get(name)
		return value(v)
	}
	s := &span{
		resource: readAttributes(member("resource").at("attributes")),
		scope:    member("scope").at("name").text(),
	}
	spanned, logs := member("span"), member("logs")
	if log := member("log"); spanned == nil && log.isObject() {
		spanned, logs = log, value("["+string(log)+"]")
	}
	s.body = readAttributes(spanned)
	s.own = readAttributes(s.body.get("attributes"))
	s.own.unfold("braintrust.span_attributes", "braintrust.metadata", "braintrust.metrics")
	s.readEvents(logs)
	// The conventions name the span so.
	if object.Has("log") {
		name := s.own.text("gen_ai.operation.name") + " " + s.own.text("gen_ai.request.model")
		s.body.add("name", quoted(strings.TrimSpace(name)))
	}
	s.tables = general
	if dialect.IsAgent(s) {
		s.tables = ofAgents
	}

	return s.read()
}

// start returns the time at which the span began. A log record has no start.
func (s *span) start() time.Time {
	for _, name := range []string{"startTimeUnixNano", "timeUnixNano", "observedTimeUnixNano"} {
		if v := s.body.get(name); v != nil {
			return moment(v)
		}
	}
	return time.Time{}
}

// read reads the span.
func (s *span) read() Span {
	r := Span{
		Kind:     s.kind(),
		TraceID:  strings.ToLower(s.body.text("traceId")),
		SpanID:   strings.ToLower(s.body.text("spanId")),
		ParentID: strings.ToLower(s.body.text("parentSpanId")),
		Name:     s.body.text("name"),
		Start:    s.start(),
		End:      moment(s.body.get("endTimeUnixNano")),
		Tags:     s.tags(),
		Prompt:   s.prompt(),
		LoggedAs: s.loggedAs(),
	}
	r.Status, r.ErrorType, r.ErrorMessage = s.outcome()
	r.Metadata, r.Scores = s.metadata()
	if x, ok := s.price(); ok {
		r.Price = json.RawMessage(strconv.FormatFloat(x, 'f', -1, 64))
	}

	if r.Kind == dialect.Call || r.Kind == dialect.Embedding {
		s.takeRequest(&r)
	} else {
		r.Input, r.Output = s.shown(dialect.ShownInput), s.shown(dialect.ShownOutput)
	}
	if s.tables == ofAgents {
		s.takeAgent(&r)
		r.Agent = true
	}

	return r
}

// moment reads nanoseconds since 1970, or what makes sense only in a longer unit; the zero time if it
// is senseless.
func moment(v value) time.Time {
	if v.absent() {
		return time.Time{}
	}

	if at, _ := wire.SpanTime(v.shown()); !at.IsZero() {
		return at
	}
	nanos, err := strconv.ParseInt(v.shown(), 10, 64)
	if err != nil || nanos <= 0 {
		return time.Time{}
	}

	return time.Unix(0, nanos).UTC()
}

// outcome returns the status and, unless all went well, what went wrong.
func (s *span) outcome() (result, kind, message string) {
	exception := s.event("exception")
	kind = s.find(dialect.ErrorType).text()
	level := strings.ToUpper(s.find(dialect.Status).text())
	switch {
	case s.Failed() || kind != "" || level == "ERROR":
		result = "ERROR"
	case level == "WARNING":
		return "WARNING", "", s.find(dialect.ErrorMessage).text()
	default:
		return "SUCCESS", "", ""
	}

	kind = cmp.Or(kind, exception.at("exception.type").text())
	message = cmp.Or(
		s.body.get("status").at("message").text(),
		exception.at("exception.message").text(),
		s.find(dialect.ErrorMessage).text(),
	)

	return result, kind, message
}

// price returns what the call cost, if the library says so. A price of 0 says nothing.
func (s *span) price() (float64, bool) {
	v := s.find(dialect.Price)
	if object := v.inner(); object.isObject() {
		v = object.at("total")
	}
	x, ok := v.number()

	return x, ok && x > 0 && x <= wire.PriceMax
}

// firstToken returns the milliseconds until the first token.
func (s *span) firstToken() (millis float64, ok bool) {
	if x, ok := s.find(dialect.FirstSeconds).number(); ok && x >= 0 {
		return x * 1000, true
	}
	if x, ok := s.find(dialect.FirstMillis).number(); ok && x >= 0 {
		return x, true
	}

	start := s.start()
	var at time.Time
	if text := s.find(dialect.FirstAt).text(); text != "" {
		at, ok = wire.ParseTime(strings.Trim(text, `"`))
	}
	if !ok {
		for _, e := range s.events {
			if e.name == "ai.stream.firstChunk" {
				at = moment(e.time)
			}
		}
	}
	if start.IsZero() || at.Before(start) {
		return 0, false
	}

	return float64(at.Sub(start)) / float64(time.Millisecond), true
}

// rounded writes milliseconds to a thousandth.
func rounded(millis float64) string {
	return strconv.FormatFloat(math.Round(millis*1000)/1000, 'f', -1, 64)
}

// kind returns what the span is.
func (s *span) kind() dialect.Kind {
	if s.loggedAs() != "" {
		return dialect.Chain
	}
	if kind := dialect.KindOf(s); kind != "" {
		return kind
	}

	return s.guess()
}

// loggedAs returns the span id under which the SDK logs the span's call itself, or "". Wrapped
// clients and runs use the id of the span without a mark.
func (s *span) loggedAs() string {
	id := strings.ToLower(s.body.text("spanId"))
	if s.own.is("promptlayer.request_log.managed") {
		if other := s.own.text("promptlayer.request_log.span_id"); other != "" {
			id = strings.ToLower(other)
		}
		return id
	}

	if s.scope != "" && !strings.HasPrefix(s.scope, "promptlayer") {
		return ""
	}
	run := s.body.text("name") == "PromptLayer Run"
	wrapped := s.scope == "promptlayer.promptlayer_mixins" && s.own.text("provider") != "" &&
		s.own.text("function_name") != ""
	// JavaScript's say nothing but how the call ended.
	script := s.own.text("response_status") == "success" && s.own.text("function_input") != "" &&
		s.find(dialect.RequestModel, dialect.ResponseModel) == nil
	if run || wrapped || script {
		return id
	}

	return ""
}

// Name is the span's name.
func (s *span) Name() string { return s.body.text("name") }

// Scope is the name of the span's instrumentation scope.
func (s *span) Scope() string { return s.scope }

// Text returns the text of one of the span's own attributes.
func (s *span) Text(key string) string { return s.own.get(key).text() }

// Has reports whether an attribute has one of the meanings.
func (s *span) Has(meanings ...dialect.Meaning) bool { return s.find(meanings...) != nil }

// Failed reports whether the span's status is an error.
func (s *span) Failed() bool {
	code := s.body.get("status").at("code").shown()
	return code == "2" || code == "STATUS_CODE_ERROR"
}

// guess takes a span for a call if it has a model, and usage or content.
func (s *span) guess() dialect.Kind {
	if s.find(dialect.ResponseModel, dialect.RequestModel) == nil {
		if otlp.IsModelScope(s.scope) || slices.ContainsFunc(s.own.keys, otlp.IsModelKey) {
			return dialect.Chain
		}
		return dialect.Plain
	}

	if s.find(dialect.InputTokens, dialect.OutputTokens, dialect.UsageObject) != nil {
		return dialect.Call
	}
	for _, role := range []string{userRole, assistantRole} {
		if c := s.content(role); !c.empty() {
			return dialect.Call
		}
	}

	return dialect.Chain
}

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
