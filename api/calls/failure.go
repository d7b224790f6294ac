package calls

import (
	"bytes"
	"cmp"
	"strings"
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

// providerError reads the error that a provider sent instead of a response, nil if it
// sent none. The shapes:
//
//	OpenAI       {error:{message, type, param, code}}, and compatible APIs; Azure without a type
//	Anthropic    {type:"error", error:{type, message}, request_id}, also as the last chunk of a stream
//	Google       {error:{code, message, status, details}}, or an array of that
//	Bedrock      {Error:{Code, Message}, ResponseMetadata} of boto3; {name, $fault, message} of
//	             the JavaScript SDK; {__type, message} over HTTP
//	Mistral      {object:"error", message, type, code}
//	Ollama, HF   {error:"..."}
//	Cohere       {message:"..."}; others {detail:"..."}, {errors:[...]}
//	a library    the text of its exception, which may hold one of these as JSON
//
// A text, or a lone message or detail, may just as well be an answer: these are errors
// only if the caller says so.
func providerError(r node, failed bool) *Failure {
	// Most responses are answers, and searching their bytes is much faster
	// than reading members.
	if !failed && !bytes.Contains(r.raw, []byte("rror")) && !bytes.Contains(r.raw, []byte("$fault")) &&
		!bytes.Contains(r.raw, []byte("__type")) {
		return nil
	}

	switch {
	case r.isArray():
		// A stream ends with its error.
		var last node
		for e := range r.each {
			if e.isObject() {
				last = e
			}
		}
		return providerError(last, false)
	case r.isText():
		text := strings.TrimSpace(r.text())
		if !failed || text == "" {
			return nil
		}
		// A library's exception may have the provider's own object as its text.
		if f := providerError(r.inner(), failed); f != nil {
			return f
		}
		return &Failure{Message: text}
	case !r.isObject():
		return nil
	}

	for _, e := range []node{r.first("error", "Error"), r.at("errors").element()} {
		if text := e.text(); text != "" {
			return &Failure{Message: text}
		}
		if f := namedError(e); f != nil {
			return f
		}
	}

	// Without an error member, something else must mark the object as an error.
	marked := r.texts("type") == "error" || r.texts("object") == "error" || r.first("__type", "$fault").exists()
	if !marked && !failed {
		return nil
	}
	f := namedError(r)
	if f == nil || !marked && f.Message == "" {
		return nil
	}

	return f
}

// namedError reads an error's own object; nil if it has neither a type nor a message.
func namedError(e node) *Failure {
	f := Failure{Message: e.texts("message", "Message", "detail")}
	for _, name := range []string{"type", "status", "__type", "name", "Code", "code"} {
		// The words come first: a code is often no more than the HTTP status.
		if word := e.at(name).compact(); word != "" && word != "error" && f.Type == "" {
			f.Type = word
		}
	}
	if f == (Failure{}) {
		return nil
	}

	return &f
}
