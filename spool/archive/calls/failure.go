package calls

import (
	"bytes"
	"cmp"
	"strings"
)

// Failure says why a call failed, or what went wrong with it.
type Failure struct {
	// Type is the caller's error_type, else the provider's own word for it; "" if neither says it.
	Type string

	// Message is the caller's error_message, else the provider's; "" if neither says it.
	Message string
}

// failed reports whether the caller says that the call failed.
func failed(member func(string) node) bool {
	return member("error_type").text() != "" || strings.EqualFold(member("status").text(), "ERROR")
}

// newFailure puts together what the caller says went wrong and what the provider told, which is nil if its
// response was no error. It returns nil if nobody says that anything went wrong.
func newFailure(member func(string) node, told *Failure) *Failure {
	f := Failure{Type: Clip(member("error_type").text()), Message: member("error_message").text()}
	if told == nil && f.Message == "" && !failed(member) {
		return nil
	}

	if told != nil {
		f.Type = cmp.Or(f.Type, Clip(told.Type))
		f.Message = cmp.Or(f.Message, told.Message)
	}

	return &f
}

// providerError reads the error that a provider answered instead of a response; nil if it answered none. The shapes:
//
//	OpenAI       {error:{message, type, param, code}}, and those who answer alike; Azure without a type
//	Anthropic    {type:"error", error:{type, message}, request_id}, also as the last chunk of a stream
//	Google       {error:{code, message, status, details}}, or an array of that
//	Bedrock      {Error:{Code, Message}, ResponseMetadata} of boto3; {name, $fault, message} of the JavaScript SDK;
//	             {__type, message} over HTTP
//	Mistral      {object:"error", message, type, code}
//	Ollama, HF   {error:"..."}
//	Cohere       {message:"..."}; others {detail:"..."}, {errors:[...]}
//	a library    the text of its exception, which may hold one of these as JSON
//
// A text, or a lone message or detail, may as well be an answer: they are errors only where the caller says so.
func providerError(r node, failed bool) *Failure {
	// Most responses are answers: their bytes tell that much faster than their members do.
	if !failed && !bytes.Contains(r, []byte("rror")) && !bytes.Contains(r, []byte("$fault")) &&
		!bytes.Contains(r, []byte("__type")) {
		return nil
	}

	switch {
	case r.isArray():
		// A stream ends with its error.
		var last *Failure
		r.each(func(e node) {
			if e.isObject() {
				last = providerError(e, false)
			}
		})
		return last

	case r.isText():
		text := strings.TrimSpace(r.text())
		if !failed || text == "" {
			return nil
		}
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

	marked := r.texts("type") == "error" || r.texts("object") == "error" || r.first("__type", "$fault") != nil
	if !marked && !failed {
		return nil
	}
	f := namedError(r)
	if f == nil || !marked && f.Message == "" {
		return nil
	}

	return f
}

// namedError reads an error's own object; nil if it says neither what it is nor a message.
func namedError(e node) *Failure {
	f := Failure{Message: e.texts("message", "Message", "detail")}
	for _, name := range []string{"type", "status", "__type", "name", "Code", "code"} {
		if word := e.at(name).compact(); word != "" && word != "error" && f.Type == "" {
			f.Type = word
		}
	}

	if f == (Failure{}) {
		return nil
	}

	return &f
}
