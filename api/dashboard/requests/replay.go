package requests

import (
	"encoding/json"
	"slices"
	"strings"

	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/markup"
	"promptspool/api/wire"
)

// argumentBytesMax bounds what a command can be given as an argument; Linux takes 128 KiB.
const argumentBytesMax = 100 << 10

// replay is a call over HTTP that a reader copies as a program, which needs no library.
type replay struct {
	url      string
	variable string          // of the environment, which has the key
	header   string          // takes the key
	scheme   string          // in front of the key
	version  [2]string       // another header and its value; "" if there is none
	body     json.RawMessage // what is sent
}

// logReplay logs a request again at base.
func logReplay(base string, body json.RawMessage) replay {
	path := "/rest/track-request"
	if object, err := wire.ParseObject(body); err == nil && wire.IsLog(object) {
		path = "/log-request"
	}

	return replay{url: base + path, variable: "PROMPTSPOOL_KEY", header: "X-API-KEY", body: body}
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
	{"anthropic", "", "messages", replay{
		url:      "https://api.anthropic.com/v1/messages",
		variable: "ANTHROPIC_API_KEY",
		header:   "x-api-key",
		version:  [2]string{"anthropic-version", "2023-06-01"},
	}},
}

// bearer returns the call of an address that takes its key as a bearer token.
func bearer(url, variable string) replay {
	return replay{url: url, variable: variable, header: "Authorization", scheme: "Bearer "}
}

// ofClients are the arguments that a provider's client keeps to itself.
var ofClients = []string{"timeout", "extra_headers", "extra_query", "api_key"}

// providerReplay calls the provider as the app did. Without a url, it is not known how.
func providerReplay(r wire.Record) replay {
	request, _ := wire.ParseObject(r.Content())
	raw, _ := request.Get("kwargs")
	kwargs, err := wire.ParseObject(raw)
	if err != nil {
		return replay{}
	}

	for _, e := range endpoints {
		isCalled := e.provider == r.Provider && strings.Contains(r.FunctionName, e.function)
		if !isCalled || !kwargs.Has("model") || !kwargs.Has(e.argument) {
			continue
		}
		var members []string
		for _, m := range kwargs {
			if !slices.Contains(ofClients, m.Name) {
				members = append(members, quoted(m.Name)+":"+string(m.Value))
			}
		}
		e.body = json.RawMessage("{" + strings.Join(members, ",") + "}")
		return e.replay
	}

	return replay{}
}

// copyLink is a program that can be copied.
type copyLink struct{ Text, Href, About string }

// copyLinks returns the programs that make a record's call again: at its provider, if it is known how, and
// at this server, which logs it.
func copyLinks(r wire.Record, t *conversation.Texts) (links []copyLink) {
	add := func(call, about, place string, languages ...string) {
		for _, l := range languages {
			links = append(links, copyLink{call + " as " + l, t.Address(place + strings.ToLower(l)), about})
		}
	}
	if again := providerReplay(r); again.url != "" {
		about := "Calls " + r.Provider + " as the app did, with the key in $" + again.variable
		add("Provider call", about, ofProvider, "curl", "Python", "JavaScript")
	}
	add("Log call", "Logs this call here once more, with the key in $PROMPTSPOOL_KEY", "", "curl", "Python")

	return links
}

// ofProvider begins the places of what calls the provider.
const ofProvider = "provider-"

// curl returns the call as a command of a POSIX shell.
func (r replay) curl() string {
	// Double quotes around the key, so that the shell expands the variable.
	command := "curl " + shellQuote(r.url) + ` -H "` + r.header + ": " + r.scheme + "$" + r.variable + `" `
	if r.version[0] != "" {
		command += "-H " + shellQuote(r.version[0]+": "+r.version[1]) + " "
	}
	command += "-H 'Content-Type: application/json' "
	if quoted := shellQuote(string(r.body)); len(quoted) <= argumentBytesMax {
		return command + "-d " + quoted
	}

	// No line of JSON is a word of this kind.
	return command + "--data-binary @- <<'END_OF_CALL'\n" + string(r.body) + "\nEND_OF_CALL"
}

// shellQuote turns a text into one word of a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// python returns the call as a program of Python. The arguments are where they can be changed.
func (r replay) python() string {
	return "import json\nimport os\nimport urllib.request\n\n" +
		"call = json.loads(" + pythonText(string(r.body)) + ")\n\n" +
		"request = urllib.request.Request(\n" +
		"    " + quoted(r.url) + ",\n" +
		"    json.dumps(call).encode(),\n" +
		"    {" + r.headers(`os.environ["`+r.variable+`"]`) + "},\n)\n" +
		"print(urllib.request.urlopen(request).read().decode())\n"
}

// javaScript returns the call as a module of JavaScript, of which all JSON is a part as it is.
func (r replay) javaScript() string {
	return "const call = " + laidOut(string(r.body)) + ";\n\n" +
		"const response = await fetch(" + quoted(r.url) + ", {\n" +
		"  method: \"POST\",\n" +
		"  headers: {" + r.headers("process.env."+r.variable) + "},\n" +
		"  body: JSON.stringify(call),\n});\n" +
		"console.log(await response.text());\n"
}

// headers returns the headers as members of an object, in which Python and JavaScript are the same. key is the
// expression that reads the key.
func (r replay) headers(key string) string {
	if r.scheme != "" {
		key = quoted(r.scheme) + " + " + key
	}
	members := quoted(r.header) + ": " + key
	if r.version[0] != "" {
		members += ", " + quoted(r.version[0]) + ": " + quoted(r.version[1])
	}

	return members + `, "Content-Type": "application/json"`
}

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
