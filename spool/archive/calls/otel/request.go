package otel

import (
	"encoding/json"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// requestBody is the body of a track-request.
type requestBody struct {
	*Span
	kwargs, response map[string]any
	provider         string
}

func (b requestBody) members(o *object) {
	name := clip(b.Name, wire.FunctionNameRunesMax)
	if name == "" {
		name = "span"
	}
	o.add("function_name", name)
	o.addText("provider_type", clip(b.provider, wire.NameRunesMax))
	o.add("kwargs", b.kwargs)
	o.add("request_response", b.response)
	o.add("request_start_time", iso(b.Start))
	o.add("request_end_time", iso(b.End))

	if len(b.Tags) > 0 {
		o.add("tags", b.Tags)
	}
	if len(b.Metadata) > 0 {
		o.add("metadata", b.Metadata)
	}
	o.addText("prompt_id", b.Prompt.Name)
	if b.Prompt.Version != 0 {
		o.add("prompt_version", b.Prompt.Version)
	}
	o.addText("prompt_label", b.Prompt.Label)
	if len(b.Prompt.InputVariables) > 0 {
		o.add("prompt_input_variables", value(b.Prompt.InputVariables))
	}

	o.addText("status", b.Status)
	o.addText("error_type", b.ErrorType)
	o.addText("error_message", b.ErrorMessage)
	o.addText("span_id", b.SpanID)
}

// request returns the track-request that says the same as the span.
func (s *span) request(r *Span) json.RawMessage {
	in, out := s.content(inputs), s.content(outputs)

	// It is about as long as the span, and growing by doubling would copy it several times.
	return appendJSON(make([]byte, 0, len(s.body)+512), requestBody{
		Span:     r,
		kwargs:   s.kwargs(in, r.Kind),
		response: s.response(out, r),
		provider: s.provider(),
	})
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
func (s *span) kwargs(in conversation, kind Kind) map[string]any {
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
	s.each(parameter, func(name string, v value) {
		if name == "max_tokens" && string(v) == "-1" { // OpenLIT's way to say none
			return
		}
		if name == "tool_choice" {
			v = v.inner()
		}
		set(name, v)
	})
	set("model", s.find(requestModel))
	s.eachJSON(parameters, func(object map[string]value) {
		for name, v := range object {
			if !slices.Contains(notParameters, name) && string(v) != `""` {
				set(name, v)
			}
		}
		set("tools", object["tools"])
	})
	set("model", s.find(responseModel))
	if list := s.tools(); len(list) > 0 {
		kwargs["tools"] = list
	}

	messages := in.messages
	if first := s.systemMessage(); first != nil && !repeats(messages, first) {
		messages = append([]value{first}, messages...)
	}
	switch {
	case len(in.texts) > 0 || kind == KindEmbedding && len(in.texts) == 0 && in.raw.absent():
		if texts := append(in.texts, textsOf(messages)...); len(texts) > 0 {
			kwargs["input"] = texts
		}
	case len(messages) > 0:
		kwargs["messages"] = messages
	}

	return kwargs
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

// systemMessage returns the message of an attribute that has it apart from the others.
func (s *span) systemMessage() value {
	v := s.find(system)
	if v == nil {
		v = s.details("gen_ai.system_instructions")
	}
	if v == nil {
		v = s.rawResponse().at("instructions") // OpenAI's responses repeat them
	}
	if v.absent() {
		return nil
	}

	b := builder{message: message{Role: "system"}}
	if parts := v.inner(); parts.isArray() {
		for _, p := range parts.elements() {
			b.part(p)
		}
	} else {
		b.say(v)
	}
	done := b.close()
	if len(done) == 0 {
		return nil
	}

	return encoded(done[0])
}

// repeats reports whether the first message is the same as one that was found elsewhere.
func repeats(messages []value, m value) bool {
	if len(messages) == 0 || messages[0].texts("role") != "system" && messages[0].texts("role") != "developer" {
		return false
	}

	return string(messages[0].at("content")) == string(m.at("content"))
}

// response returns what came back, in OpenAI's form or in the provider's.
func (s *span) response(out conversation, r *Span) map[string]any {
	response := map[string]any{}
	for name, v := range objectOf(out.raw) {
		if shallow(v) {
			response[name] = v
		}
	}

	reasons := s.finishReasons()
	own := s.rawResponse()
	if len(reasons) == 0 {
		if reason := ownReason(own); reason != "" {
			reasons = []string{reason}
		}
	}
	switch {
	case !out.raw.absent():
	case r.Kind == KindEmbedding:
		response["embeddings"] = []int{} // that there were some is all that is kept of them
	case r.Status == "ERROR" && out.empty() && len(reasons) == 0:
		return response
	default:
		response["choices"] = choices(out, reasons)
	}

	counts := s.usage()
	if u := own.at("usage"); u.isObject() && s.find(usageObject) == nil {
		counts = u // with all its details, and as its provider counts
	}
	if response["usage_metadata"] == nil && counts != nil {
		response["usage"] = counts
	}
	for name, v := range map[string]value{
		"model": s.find(responseModel), "id": s.find(responseID), "service_tier": s.find(tier),
	} {
		if v == nil && name != "model" {
			v = own.at(name)
		}
		if v.isText() {
			response[name] = v
		}
	}

	return response
}

// rawResponse returns the provider's own response, if a library keeps it beside what it
// read of it.
func (s *span) rawResponse() value {
	if raw := s.find(rawResponse).inner(); raw.isObject() && isResponse(raw) {
		return raw
	}

	return nil
}

// ownReason returns why a response of OpenAI's or Anthropic's ended.
func ownReason(response value) string {
	if reason := response.at("incomplete_details").texts("reason"); reason != "" {
		return reason
	}
	if reason := response.at("choices").element().texts("finish_reason"); reason != "" {
		return reason
	}

	return response.texts("stop_reason", "status")
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
