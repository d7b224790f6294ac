package requests

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"text/template"

	"promptspool/api/dashboard/markup"
	"promptspool/api/wire"
)

// argumentBytesMax bounds what a command can be given as an argument; Linux takes 128 KiB.
const argumentBytesMax = 100 << 10

// replay is a call over HTTP that a reader copies as a program, which needs no library.
type replay struct {
	URL, Header, Scheme string // Header takes the key, after the scheme
	Variable            string // of the environment, which has the key
	Version             string // of Anthropic's API
	Body                string // the arguments, in JSON
}

// logReplay logs a request again at base.
func logReplay(base string, body json.RawMessage) replay {
	path := "/rest/track-request"
	if object, err := wire.ParseObject(body); err == nil && wire.IsLog(object) {
		path = "/log-request"
	}

	return replay{URL: base + path, Header: "X-API-KEY", Variable: "PROMPTSPOOL_KEY", Body: string(body)}
}

// endpoint is an address at which a provider takes the arguments of its client as they are.
type endpoint struct {
	provider string
	function string // part of the function's name; "" for any
	argument string // which such a call has
	replay
}

var endpoints = []endpoint{
	{"openai", "", "messages", bearer("https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY")},
	{"openai", "responses", "input", bearer("https://api.openai.com/v1/responses", "OPENAI_API_KEY")},
	{"openai", "embeddings", "input", bearer("https://api.openai.com/v1/embeddings", "OPENAI_API_KEY")},
	{"mistral", "", "messages", bearer("https://api.mistral.ai/v1/chat/completions", "MISTRAL_API_KEY")},
	{"anthropic", "", "messages", replay{URL: "https://api.anthropic.com/v1/messages",
		Header: "x-api-key", Variable: "ANTHROPIC_API_KEY", Version: "2023-06-01"}},
}

// bearer returns the call of an address that takes its key as a bearer token.
func bearer(url, variable string) replay {
	return replay{URL: url, Header: "Authorization", Scheme: "Bearer ", Variable: variable}
}

// ofClients are the arguments that a provider's client keeps to itself.
var ofClients = []string{"timeout", "extra_headers", "extra_query", "api_key"}

// atProvider returns where the app called the provider, and with which arguments. Without a URL, it is
// not known.
func atProvider(r wire.Record) (to replay, kwargs wire.Object) {
	request, _ := wire.ParseObject(r.Content())
	raw, _ := request.Get("kwargs")
	kwargs, err := wire.ParseObject(raw)
	at := slices.IndexFunc(endpoints, func(e endpoint) bool {
		isCalled := e.provider == r.Provider && strings.Contains(r.FunctionName, e.function)
		return isCalled && kwargs.Has("model") && kwargs.Has(e.argument)
	})
	if err != nil || at < 0 {
		return replay{}, nil
	}

	return endpoints[at].replay, kwargs
}

// providerReplay calls the provider as the app did.
func providerReplay(r wire.Record) replay {
	again, kwargs := atProvider(r)
	var members []string
	for _, m := range kwargs {
		if !slices.Contains(ofClients, m.Name) {
			members = append(members, quoted(m.Name)+":"+string(m.Value))
		}
	}
	again.Body = "{" + strings.Join(members, ",") + "}"

	return again
}

//go:embed replay.tmpl
var replayText string

// programs are the programs, by the language in lower case. JavaScript has all JSON as a part of itself.
var programs = template.Must(template.New("").Funcs(template.FuncMap{
	"argument": shellArgument, "laid": laidOut, "python": pythonText, "quoted": quoted, "shell": shellQuote,
}).Parse(replayText))

// program returns the call in a language, if it is known how.
func (r replay) program(language string) (text string, ok bool) {
	var b strings.Builder
	ok = r.URL != "" && programs.ExecuteTemplate(&b, language, r) == nil

	return b.String(), ok
}

// shellArgument gives a command its data.
func shellArgument(body string) string {
	if quoted := shellQuote(body); len(quoted) <= argumentBytesMax {
		return "-d " + quoted
	}

	// No line of JSON is a word of this kind.
	return "--data-binary @- <<'END_OF_CALL'\n" + body + "\nEND_OF_CALL"
}

// shellQuote turns a text into one word of a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoted returns a text in quotes, as JSON, Python and JavaScript write it.
func quoted(text string) string {
	raw, _ := json.Marshal(text)

	return string(raw)
}

// pythonText returns JSON as a raw string of Python with three quotes, in which nothing is escaped. JSON
// may have a quote in a string only, and there as its code.
func pythonText(body string) string {
	return "r'''" + strings.ReplaceAll(laidOut(body), "'", `\u0027`) + "'''"
}

// laidOut returns JSON with each value on its line.
func laidOut(body string) string {
	if laid, ok := markup.LayOut(body); ok {
		return laid
	}

	return body
}
