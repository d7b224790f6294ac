package otel

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// takeRequest sets what the request has beyond what the span says itself.
func (s *span) takeRequest(r *Span) {
	in, out := s.content(userRole), s.content(assistantRole)
	r.provider = wire.Clip(s.provider(), wire.NameRunesMax)
	r.kwargs, r.response = s.kwargs(in, r.Kind), s.response(out, r)
	// The step ends with the tools that the model called, and the piece of a stream is not all of it.
	r.endless = s.reportsStep() || s.isCodex()

	seconds, ok := s.find(dialect.Seconds).number()
	if ok && s.own.text("logfire.span_type") == "log" && 0 < seconds && seconds < 1e6 {
		r.Start = r.End.Add(-time.Duration(seconds * float64(time.Second)))
	}
}

// reportsStep reports whether the span is a step of Mastra's around its call, which both report.
func (s *span) reportsStep() bool { return s.own.text("mastra.span.type") == "model_step" }

// SharedID begins the ids of responses that the reports of one call share if it has no other.
const SharedID = "span:"

// sharedID returns such an id, nil for most spans.
func (s *span) sharedID(r *Span) value {
	if s.isCodex() {
		return s.codexID()
	}

	step := r.SpanID
	if !s.reportsStep() {
		step = r.ParentID
	}
	if step == "" || !s.reportsStep() && s.own.text("mastra.span.type") != "model_inference" {
		return nil
	}

	return quoted(SharedID + r.TraceID + ":" + step)
}

// functionName returns the function_name of the request.
func (s *Span) functionName() string {
	return cmp.Or(wire.Clip(s.Name, wire.FunctionNameRunesMax), "span")
}

// Request returns the body of a track-request that logs the same call. It is nil if the
// span is not a model call.
func (s *Span) Request() json.RawMessage {
	if !s.IsCall() {
		return nil
	}

	return appendObject(nil, s)
}

// members writes the request.
func (s *Span) members(o *object) {
	o.add("function_name", s.functionName())
	o.addText("provider_type", s.provider)
	o.add("kwargs", s.kwargs)
	o.add("request_response", s.response)
	o.add("request_start_time", iso(s.Start))
	o.add("request_end_time", iso(s.callEnd()))

	if len(s.Tags) > 0 {
		o.add("tags", s.Tags)
	}
	if len(s.Metadata) > 0 {
		o.add("metadata", s.Metadata)
	}
	o.addText("prompt_id", s.Prompt.Name)
	if s.Prompt.Version != 0 {
		o.add("prompt_version", s.Prompt.Version)
	}
	o.addText("prompt_label", s.Prompt.Label)
	if len(s.Prompt.InputVariables) > 0 {
		o.add("prompt_input_variables", value(s.Prompt.InputVariables))
	}

	o.addText("status", s.Status)
	o.addText("error_type", s.ErrorType)
	o.addText("error_message", s.ErrorMessage)
	o.addText("span_id", s.SpanID)
}

// Write returns what wire.DecodeRequest reads of Request, but for span_id, kwargs and the
// response. To write it and to read it again would take the archive several times as long.
func (s *Span) Write() wire.RequestWrite {
	w := wire.RequestWrite{
		FunctionName: s.functionName(),
		ProviderType: s.provider,
		PromptLink:   s.Prompt,
		ErrorType:    s.ErrorType,
		ErrorMessage: s.ErrorMessage,
	}
	w.Start, w.End, w.Status = s.Start, s.callEnd(), s.Status
	if len(s.Tags) > 0 {
		w.Tags = s.Tags
	}
	if len(s.Metadata) > 0 {
		w.Metadata = s.Metadata
	}

	return w
}

// callEnd returns when the call ended, zero if that is unknown.
func (s *Span) callEnd() time.Time {
	if s.endless {
		return time.Time{}
	}

	return s.End
}

// iso returns a moment as a track-request has it. For an unknown one it returns a number
// that is too large to be one, which a track-request may have.
func iso(t time.Time) value {
	if t.IsZero() {
		return value("1e300")
	}

	return quoted(t.Format(time.RFC3339Nano))
}

// notParameters are members of a provider's request that are not parameters of the model.
var notParameters = []string{
	"messages", "input", "prompt", "contents", "system", "instructions", "tools", "functions", "headers",
	"extra_headers",
}

// kwargs returns the arguments of the call.
func (s *span) kwargs(in conversation, kind dialect.Kind) map[string]any {
	kwargs := map[string]any{}
	set := func(name string, v value) {
		if _, known := kwargs[name]; !known && !v.absent() && shallow(v) {
			kwargs[name] = v
		}
	}

	// The provider's own request has everything; it wins.
	for name, v := range objectOf(in.raw) {
		set(name, v)
	}
	s.each(dialect.Parameter, func(name string, v value) {
		// OpenLIT's way to say none.
		if name == "max_tokens" && string(v) == "-1" {
			return
		}
		set(name, parameter(name, v))
	})
	set("model", s.find(dialect.RequestModel))
	s.eachJSON(dialect.Parameters, func(object map[string]value) {
		for name, v := range object {
			if !slices.Contains(notParameters, name) && string(v) != `""` {
				set(name, v)
			}
		}
		set("tools", object["tools"])
	})
	set("model", s.find(dialect.ResponseModel))
	if list := s.tools(); len(list) > 0 {
		kwargs["tools"] = list
	}

	messages := in.messages
	if first := s.systemMessage(startsWithSystem(messages)); first != nil && !repeats(messages, first) {
		messages = append([]value{first}, messages...)
	}
	switch {
	case len(in.texts) > 0 || kind == dialect.Embedding && len(in.texts) == 0 && in.raw.absent():
		if texts := append(in.texts, textsOf(messages)...); len(texts) > 0 {
			kwargs["input"] = texts
		}
	case len(messages) > 0:
		kwargs["messages"] = messages
	}

	return kwargs
}

// parameter returns the value of a parameter, which some libraries write as text.
func parameter(name string, v value) value {
	text := value(strings.ToLower(v.text()))
	isBool := string(text) == "true" || string(text) == "false"
	if name != "stop" && (isBool || jsonscan.Valid(text) && text.isNumber()) {
		return text
	}

	return v.inner()
}

// textsOf returns the contents of messages that are texts: what was embedded.
func textsOf(messages []value) []string {
	var texts []string
	for _, m := range messages {
		if text := m.at("content").text(); text != "" {
			texts = append(texts, text)
		}
	}

	return texts
}

// systemMessage returns the message of an attribute that has it apart from the others. OpenInference has
// Anthropic's only in the request, which may repeat one that is known.
func (s *span) systemMessage(known bool) value {
	v := s.find(dialect.System)
	if v == nil {
		// OpenAI's responses repeat them.
		v = s.rawResponse().at("instructions")
	}
	if v.absent() && !known {
		v = s.own.get("input.value").inner().first(systemNames...)
	}
	if v.absent() {
		return nil
	}

	b := builder{message: message{Role: "system"}}
	b.content(v)
	b.flush()
	if len(b.done) == 0 {
		return nil
	}

	return encoded(b.done[0])
}

// systemNames are the members of providers' requests that have the system prompt.
var systemNames = []string{"system", "instructions", "system_instruction", "systemInstruction", "preamble"}

// startsWithSystem reports whether the first message is one of the system.
func startsWithSystem(messages []value) bool {
	if len(messages) == 0 {
		return false
	}
	role := messages[0].texts("role")

	return role == "system" || role == "developer"
}

// repeats reports whether the first message is the same as one that was found elsewhere.
func repeats(messages []value, m value) bool {
	return startsWithSystem(messages) && string(messages[0].at("content")) == string(m.at("content"))
}

// response returns what came back, in OpenAI's form or in the provider's.
func (s *span) response(out conversation, r *Span) map[string]any {
	response := map[string]any{}
	for name, v := range objectOf(out.raw) {
		if shallow(v) {
			response[name] = v
		}
	}

	shared, reasons := s.sharedID(r), s.finishReasons()
	own := s.rawResponse()
	if len(reasons) == 0 {
		if reason := ownReason(own); reason != "" {
			reasons = []string{reason}
		}
	}
	switch {
	case !out.raw.absent():
	case r.Status == "ERROR" && out.empty() && len(reasons) == 0 && shared == nil &&
		s.find(dialect.ResponseID) == nil:
		return response
	case r.Kind == dialect.Embedding:
		// A list of vectors, which are left out.
		response["object"] = "list"
	default:
		response["choices"] = choices(out, reasons)
	}

	if counts := s.usage(); response["usage_metadata"] == nil && shallow(counts) && counts != nil && !s.reportsStep() {
		response["usage"] = counts
	}
	if more := s.own.get("ai.response.providerMetadata").inner(); more.isObject() && shallow(more) {
		response["providerMetadata"] = more
	}
	for name, v := range map[string]value{
		"model": s.find(dialect.ResponseModel), "id": s.find(dialect.ResponseID),
		"service_tier": s.find(dialect.ServiceTier),
	} {
		switch {
		case v == nil && name == "id":
			v = ownID(own)
		case v == nil && name != "model":
			v = own.at(name)
		}
		if v.isText() {
			response[name] = v
		}
	}
	if shared != nil {
		response["id"] = shared
	}

	return response
}

// rawResponse returns the provider's own response, if a library keeps it beside what it
// read of it.
func (s *span) rawResponse() value {
	raw := s.find(dialect.RawResponse).inner()
	// A list of one is that of @openai/agents.
	if list := raw.elements(); len(list) == 1 {
		raw = list[0]
	}
	if raw.isObject() && isResponse(raw) {
		return raw
	}

	return nil
}

// ownID returns the id of a response. LangChain's results have it with their message, which may have
// one of LangChain's own instead.
func ownID(response value) value {
	message := response.at("generations").element().element().at("message", "kwargs")
	for _, v := range []value{response, message.at("response_metadata"), message} {
		if id := v.at("id"); id.text() != "" && !strings.HasPrefix(id.text(), "run-") {
			return id
		}
	}

	return nil
}

// ownReason returns why a response of OpenAI's or Anthropic's ended.
func ownReason(response value) string {
	return cmp.Or(
		response.at("incomplete_details").texts("reason"),
		response.at("choices").element().texts("finish_reason"),
		response.texts("stop_reason", "status"),
	)
}

// choice is a choice in OpenAI's form.
type choice struct {
	Index   int
	Message value
	Finish  string
}

func (c choice) members(o *object) {
	o.add("index", c.Index)
	o.add("message", c.Message)
	o.addText("finish_reason", c.Finish)
}

// finishReasons returns the reasons that are not with the messages: a list, JSON of one,
// or several with commas between.
func (s *span) finishReasons() []string {
	v := s.find(dialect.FinishReason).inner()
	if !v.isArray() {
		return slices.DeleteFunc(strings.Split(v.shown(), ", "), func(s string) bool { return s == "" })
	}

	var all []string
	for _, e := range v.elements() {
		// A stream has it before the one that counts.
		if reason := e.shown(); reason != "in_progress" {
			all = append(all, reason)
		}
	}

	return all
}

// choices returns one for each message, each with its reason to end, and a single one
// without content if there is no message.
func choices(out conversation, reasons []string) []choice {
	if len(out.messages) == 0 {
		out.append(value("{}"), "")
	}

	all := make([]choice, len(out.messages))
	for i, m := range out.messages {
		all[i] = choice{Index: i, Message: m, Finish: out.finish[i]}
		if all[i].Finish == "" && i < len(reasons) {
			all[i].Finish = reasons[i]
		}
	}

	return all
}

// shallow reports whether a value may be put into a body without nesting it too deep.
func shallow(v value) bool { return jsonscan.Depth(v, levelsMax) <= levelsMax }
