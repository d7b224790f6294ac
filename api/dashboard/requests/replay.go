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
		"call = " + pythonLiteral(string(body)) + "\n\n" +
		"request = urllib.request.Request(\n" +
		"    " + string(url) + ",\n" +
		"    json.dumps(call).encode(),\n" +
		`    {"X-API-KEY": os.environ["PROMPTSPOOL_KEY"], "Content-Type": "application/json"},` + "\n)\n" +
		"print(urllib.request.urlopen(request).read().decode())\n"
}

// pythonLiteral returns JSON as an expression of Python.
func pythonLiteral(body string) string {
	if laid, ok := markup.LayOut(body); ok {
		body = laid
	}

	var b strings.Builder
	for from := 0; from < len(body); {
		at := strings.IndexAny(body[from:], `"tfn`)
		if at < 0 {
			b.WriteString(body[from:])
			break
		}
		at += from
		b.WriteString(body[from:at])

		switch body[at] {
		case '"':
			from = endOfJSONString(body, at)
			b.WriteString(pythonString(body[at:from]))
		case 't':
			b.WriteString("True")
			from = at + len("true")
		case 'f':
			b.WriteString("False")
			from = at + len("false")
		default:
			b.WriteString("None")
			from = at + len("null")
		}
	}

	return b.String()
}

// pythonString returns a string of JSON as one of Python, which has no pairs of surrogates and no
// escaped slashes.
func pythonString(quoted string) string {
	if !strings.Contains(quoted, `\u`) && !strings.Contains(quoted, `\/`) {
		return quoted
	}

	var text string
	_ = json.Unmarshal([]byte(quoted), &text)
	again, _ := json.Marshal(text) // with no escapes but those that Python has

	return string(again)
}

// endOfJSONString returns the end of a string that begins at a place.
func endOfJSONString(text string, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}

	return len(text)
}
