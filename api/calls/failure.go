package calls

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"promptspool/api/wire"
)

// Failure says why a call failed, or what went wrong with it.
type Failure struct {
	// Type is the caller's error_type, otherwise the provider's word for it;
	// "" if unknown.
	Type string

	// Message is the caller's error_message, otherwise the provider's; "" if unknown.
	Message string
}

// failed reports whether the caller says that the call failed.
func failed(member func(string) node) bool {
	return member("error_type").text() != "" || strings.EqualFold(member("status").text(), "ERROR")
}

// status returns how a call ended: in the caller's word, otherwise by what went wrong, if anything.
func status(member func(string) node, f *Failure) string {
	said := strings.ToUpper(member("status").text())
	switch {
	// An older sidecar accepted any word.
	case slices.Contains(wire.Statuses, said):
		return said
	case f != nil:
		return "ERROR"
	}

	return "SUCCESS"
}

// newFailure combines what the caller says went wrong with the provider's error, which is
// nil if its response is none. It returns nil if neither reports anything.
func newFailure(member func(string) node, provided *Failure) *Failure {
	f := Failure{Type: Clip(member("error_type").text()), Message: member("error_message").text()}
	if provided == nil && f.Message == "" && !failed(member) {
		return nil
	}

	// The caller saw the error as it happened, so its words win.
	if provided != nil {
		f.Type = cmp.Or(f.Type, Clip(provided.Type))
		f.Message = cmp.Or(f.Message, provided.Message)
	}

	return &f
}

// errorPlaces are where a response, or an element of its stream, has the provider's error. It is in error of most,
// as an object or a text; boto3's begins with a capital. Others are of OpenAI's responses in a stream, Anthropic's
// batches, Cohere v2 at the end of a stream, OpenAI's assistants, and lists of errors.
var errorPlaces = placesOf("error Error response.error result.error delta.error last_error errors")

// errorMarks are bytes that all of them have one of: of error, exception, blockReason, block_reason and so on. Most
// streams have none. They begin with rare letters, which are found faster.
var errorMarks = []string{
	"rror", "xception", "kReason", "k_reason", `"code"`, "failed", "xpired", "nceled", "__type", "$fault",
}

// mayFail reports whether a response may have an error: searching its bytes is much faster than reading members.
func mayFail(r node) bool {
	return slices.ContainsFunc(errorMarks, func(mark string) bool { return bytes.Contains(r.raw, []byte(mark)) })
}

// failedWords are the words of responses, and of rows of batches, that say no more than that they failed.
var failedWords = []string{"failed", "errored", "expired", "canceled"}

// providerError reads the error that a provider sent instead of a response, nil if it sent none. Those
// in a stream are read with it. Besides those of errorPlaces, the shapes are:
//
//	Anthropic    {type:"error", error:{type, message}, request_id}, also as the last chunk of a stream
//	Bedrock      {name, $fault, message} of the JavaScript SDK; {__type, message} over HTTP;
//	             {throttlingException:{message}} in a stream
//	Mistral      {object:"error", message, type, code}
//	DashScope    {code, message} without an answer
//	OpenRouter   {choices:[{error:{code, message}}]}
//	Gemini       {promptFeedback:{blockReason}}: the prompt was blocked
//	Cohere       {message:"..."}; others {detail:"..."}
//	a library    the text of its exception, which may hold one of these as JSON
//
// A text, or a lone message or detail, may just as well be an answer: these are errors
// only if the caller says so.
func providerError(r node, failed bool) *Failure {
	if r.isText() {
		text := strings.TrimSpace(r.text())
		if !failed || text == "" {
			return nil
		}
		// A library's exception may have the provider's own object as its text.
		if f := providerError(r.inner(), failed); f != nil {
			return f
		}
		return &Failure{Message: text}
	}

	if !failed && !mayFail(r) {
		return nil
	}
	f := errorIn(r.indexed())
	if f != nil || !failed {
		return f
	}
	// A web framework has a list of details.
	f = errorAt(r.at("detail").or(r))
	if f != nil && f.Message == "" {
		return nil
	}

	return f
}

// errorIn reads the error in an object: a response, or an element of a stream.
func errorIn(r node) *Failure {
	kind := r.texts("type")
	// A tool's error is an input of the model.
	if !r.hasMembers() || strings.HasPrefix(kind, "tool-") {
		return nil
	}

	for _, e := range r.values(errorPlaces) {
		if f := errorAt(e); f != nil {
			f.Type = cmp.Or(f.Type, r.texts("error_type"))
			return f
		}
	}
	for choice := range nodeOf(r.at("choices").raw).each {
		if f := errorAt(choice.at("error")); f != nil {
			return f
		}
	}
	if f := cmp.Or(exception(r), blocked(r)); f != nil {
		return f
	}

	// Without an error member, something else must mark the object as an error.
	coded := r.texts("message") != "" && r.texts("code") != "" && !r.first(ownMembers...).exists()
	marked := kind == "error" || r.texts("object") == "error" || string(r.at("error").raw) == "true"
	if coded || marked || r.first("__type", "$fault").exists() {
		return namedError(r)
	}
	// A response, or a row of a batch, may say no more than that it failed.
	for _, word := range []string{r.texts("status"), r.at("response").texts("status"), r.at("result").texts("type")} {
		if slices.Contains(failedWords, word) {
			return &Failure{Type: word}
		}
	}

	return nil
}

// errorAt reads an error: a text, an object, or the first of a list; nil if it says nothing.
func errorAt(e node) *Failure {
	e = e.element().or(e)
	if text := e.text(); text != "" {
		return &Failure{Message: text}
	}
	if inner := e.at("error"); inner.isObject() {
		e = inner
	}

	return namedError(e.indexed())
}

// exception reads an exception of Bedrock's streams, which is a member with its name.
func exception(r node) *Failure {
	for name := range r.names {
		if bytes.HasSuffix(name, []byte("Exception")) && r.at(string(name)).isObject() {
			return &Failure{Type: string(name), Message: r.at(string(name)).texts("message", "Message")}
		}
	}

	return nil
}

// blocked reads why Gemini did not answer a prompt.
func blocked(r node) *Failure {
	feedback := r.first("promptFeedback", "prompt_feedback")
	reason := feedback.first("blockReason", "block_reason").compact()
	if reason == "" || reason == "0" || strings.HasSuffix(reason, "UNSPECIFIED") {
		return nil
	}
	words := feedback.texts("blockReasonMessage", "block_reason_message")

	return &Failure{Type: reason, Message: cmp.Or(words, "The prompt was blocked: "+reason)}
}

// errorWords are the members of an error that namedError reads.
var errorWords = placesOf("message Message detail errorText errorMessage msg",
	"type status __type name errorType Code code errorCode")

// namedError reads an error's own object, which has an index; nil if it has neither a type nor a message.
func namedError(e node) *Failure {
	if !e.hasAny(errorWords) {
		return nil
	}

	f := Failure{Message: e.texts("message", "Message", "detail", "errorText", "errorMessage", "msg")}
	// The words come first: a code is often no more than the HTTP status.
	for _, name := range []string{"type", "status", "__type", "name", "errorType", "Code", "code", "errorCode"} {
		if word := e.at(name).compact(); word != "" && word != "error" && f.Type == "" {
			f.Type = word
		}
	}
	if f == (Failure{}) {
		return nil
	}

	return &f
}
