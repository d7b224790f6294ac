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
	FunctionName string            `json:"function_name"`
	Provider     string            `json:"provider_type,omitempty"`
	Kwargs       any               `json:"kwargs"`
	Response     any               `json:"request_response"`
	Start        value             `json:"request_start_time"`
	End          value             `json:"request_end_time"`
	Tags         []string          `json:"tags,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	Prompt       string            `json:"prompt_id,omitempty"`
	Version      int               `json:"prompt_version,omitempty"`
	Label        string            `json:"prompt_label,omitempty"`
	Variables    json.RawMessage   `json:"prompt_input_variables,omitempty"`
	Status       string            `json:"status,omitempty"`
	ErrorType    string            `json:"error_type,omitempty"`
	ErrorMessage string            `json:"error_message,omitempty"`
	SpanID       string            `json:"span_id,omitempty"`
}

// request returns the track-request that says the same as the span.
func (s *span) request(r *Span) json.RawMessage {
	in, out := s.content(inputs), s.content(outputs)
	b := requestBody{
		FunctionName: clip(r.Name, wire.FunctionNameRunesMax),
		Provider:     clip(s.provider(), wire.NameRunesMax),
		Kwargs:       s.kwargs(in, r.Kind),
		Response:     s.response(out, r),
		Start:        iso(r.Start),
		End:          iso(r.End),
		Tags:         r.Tags,
		Metadata:     r.Metadata,
		Prompt:       r.Prompt.Name,
		Version:      r.Prompt.Version,
		Label:        r.Prompt.Label,
		Variables:    r.Prompt.InputVariables,
		Status:       r.Status,
		ErrorType:    r.ErrorType,
		ErrorMessage: r.ErrorMessage,
		SpanID:       r.SpanID,
	}
	if b.FunctionName == "" {
		b.FunctionName = "span"
	}

	return json.RawMessage(encoded(b))
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
		b.text(v.shown())
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
	Index   int    `json:"index"`
	Message value  `json:"message"`
	Finish  string `json:"finish_reason,omitempty"`
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
