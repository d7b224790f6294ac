package requests

import (
	"encoding/json"
	"strings"

	"promptspool/api/dashboard/markup"
	"promptspool/api/wire"
)

// argumentBytesMax bounds what a command can be given as an argument; Linux takes 128 KiB.
const argumentBytesMax = 100 << 10

// replayCurl returns a command that logs a request again at base. The key comes from a variable
// of the shell.
func replayCurl(base string, body json.RawMessage) string {
	// Double quotes around the key, so that the shell expands the variable.
	command := "curl " + shellQuote(base+logPath(body)) + ` -H "X-API-KEY: $PROMPTSPOOL_KEY" ` +
		`-H 'Content-Type: application/json' `
	if quoted := shellQuote(string(body)); len(quoted) <= argumentBytesMax {
		return command + "-d " + quoted
	}

	// No line of JSON is a word of this kind.
	return command + "--data-binary @- <<'END_OF_CALL'\n" + string(body) + "\nEND_OF_CALL"
}

// logPath returns the path that takes a request.
func logPath(body json.RawMessage) string {
	if object, err := wire.ParseObject(body); err == nil && wire.IsLog(object) {
		return "/log-request"
	}

	return "/rest/track-request"
}

// shellQuote turns a text into one word of a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// replayPython returns a program that logs a request again at base. It needs no library, and has
// the request's arguments where they can be changed.
func replayPython(base string, body json.RawMessage) string {
	url, _ := json.Marshal(base + logPath(body))

	return "import json\nimport os\nimport urllib.request\n\n" +
		"call = json.loads(" + pythonText(string(body)) + ")\n\n" +
		"request = urllib.request.Request(\n" +
		"    " + string(url) + ",\n" +
		"    json.dumps(call).encode(),\n" +
		`    {"X-API-KEY": os.environ["PROMPTSPOOL_KEY"], "Content-Type": "application/json"},` + "\n)\n" +
		"print(urllib.request.urlopen(request).read().decode())\n"
}

// pythonText returns JSON as a raw string of Python with three quotes, in which nothing is escaped. JSON
// may have a quote in a string only, and there as its code.
func pythonText(body string) string {
	if laid, ok := markup.LayOut(body); ok {
		body = laid
	}

	return "r'''" + strings.ReplaceAll(body, "'", `\u0027`) + "'''"
}
