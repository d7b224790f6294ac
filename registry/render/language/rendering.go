// Package language holds what the template languages share: what they render into, with
// the variables and the bounds of one rendering, errors that know their place in a text,
// and JSON values as Python writes them.
package language

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// OutputBytesMax bounds what one rendering writes, over all texts of a blueprint.
const OutputBytesMax = 16 << 20

// missingMax bounds the missing variables that are named.
const missingMax = 100

// ErrOutput means that a rendering would write more than OutputBytesMax.
var ErrOutput = fmt.Errorf("becomes longer than %d MiB", OutputBytesMax>>20)

// Template is a parsed text. It never changes.
type Template interface {
	// AppendTo appends the rendered text to b.
	AppendTo(b []byte, r *Rendering) ([]byte, error)
	// Variables lists the variables that it uses, each once, in order of appearance.
	Variables() []string
}

// Rendering is the state of filling in one blueprint: its variables, and what its texts
// may still spend together.
type Rendering struct {
	Variables map[string]json.RawMessage
	Missing   []string // variables that were used but not given
	Output    int      // bytes that may still be written
	Work      int      // bytes of variables that f-strings have read

	// The work that jinja2 has spent. Its limits are in the package jinja.
	Steps   int            // steps made
	Looked  int            // Steps when Context was last checked
	Memory  int            // bytes of the values made
	Decoded map[string]any // variables that were decoded, by name

	Context context.Context // ends when no caller waits for the outcome any longer; nil if unknown
	Ended   bool            // Context ended before the rendering did
}

// NewRendering begins a rendering with these variables, which are JSON values.
func NewRendering(vars map[string]json.RawMessage) Rendering {
	return Rendering{Variables: vars, Output: OutputBytesMax}
}

// Miss notes a variable that was used but not given.
func (r *Rendering) Miss(name string) {
	if len(r.Missing) < missingMax && !slices.Contains(r.Missing, name) {
		r.Missing = append(r.Missing, name)
	}
}

// FaultsMax bounds how many faults, findings or warnings are reported for one thing.
const FaultsMax = 32

// VariablesMax bounds the variables of a blueprint.
const VariablesMax = wire.ObjectMembersMax

// Names lists variables in order of appearance, each once. The zero value is empty.
type Names struct {
	List []string
	seen map[string]bool
}

// Add appends names that are new and not empty. It stops one name beyond VariablesMax, so
// that callers can recognise too many.
func (n *Names) Add(more ...string) {
	if n.seen == nil {
		n.seen = make(map[string]bool)
	}
	for _, name := range more {
		if name != "" && !n.seen[name] && len(n.List) <= VariablesMax {
			n.seen[name] = true
			n.List = append(n.List, name)
		}
	}
}

// Shorten cuts a caller's text for a message.
func Shorten(s string) string {
	const bytesMax = 80
	if len(s) <= bytesMax {
		return s
	}
	// The cut may be within a character.
	return strings.ToValidUTF8(s[:bytesMax], "") + "..."
}

// Error is what is wrong with a text, or with its rendering. The message is a predicate,
// such as "has a { that is not closed".
type Error struct {
	Message      string
	At           int // the byte of the text that the parser has read
	Line, Column int // the same for people, from 1; 0 if it has no place in the text
}

// Error returns the message, with the place if there is one.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}

	return fmt.Sprintf("%s (line %d, column %d)", e.Message, e.Line, e.Column)
}

// Recover returns the error with which a parse or a rendering panicked. Call it deferred.
func Recover(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	// A text that triggers a bug of ours must not end the process.
	default:
		*err = &Error{Message: fmt.Sprintf("met a mistake in promptspool, please report it: %v", r)}
	}
}

// Locate completes an error of a parser with its line and column in the text that was read.
func Locate(err error, text string) error {
	if e, ok := err.(*Error); ok {
		before := UnixLines(text[:min(e.At, len(text))])
		lastBreak := strings.LastIndexByte(before, '\n')
		e.Line = strings.Count(before, "\n") + 1
		e.Column = utf8.RuneCountInString(before[lastBreak+1:]) + 1
	}

	return err
}

// UnixLines makes every line break \n.
func UnixLines(text string) string {
	if strings.IndexByte(text, '\r') < 0 {
		return text
	}

	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// Str returns what Python's str() gives for a JSON value that json.loads read.
func Str(v json.RawMessage) string {
	if v[0] == '"' {
		return jsonscan.Unquote(v)
	}
	return string(AppendRepr(nil, v))
}

// AppendStr appends what Str returns.
func AppendStr(b []byte, v json.RawMessage) []byte {
	if v[0] != '"' {
		return AppendRepr(b, v)
	}
	// The usual case, without a copy.
	if bytes.IndexByte(v, '\\') < 0 {
		return append(b, v[1:len(v)-1]...)
	}

	return append(b, jsonscan.Unquote(v)...)
}

// AppendRepr appends what Python's repr() gives for a JSON value. The tokens of JSON and of
// a repr correspond one to one, so a single pass does it, however deep the value is nested.
func AppendRepr(b []byte, v json.RawMessage) []byte {
	for i := 0; i < len(v); {
		switch c := v[i]; c {
		case ' ', '\t', '\n', '\r':
			i++
		case '{', '}', '[', ']':
			b = append(b, c)
			i++
		case ',', ':':
			b = append(b, c, ' ')
			i++

		case '"':
			end := jsonscan.SkipString(v, i)
			b = AppendQuoted(b, jsonscan.Unquote(v[i:end]))
			i = end
		default:
			end := i
			for end < len(v) && strings.IndexByte(" \t\n\r,:]}", v[end]) < 0 {
				end++
			}
			b = AppendScalar(b, v[i:end])
			i = end
		}
	}

	return b
}

// AppendScalar appends the repr of true, false, null or a number.
func AppendScalar(b, token []byte) []byte {
	switch string(token) {
	case "true":
		return append(b, "True"...)
	case "false":
		return append(b, "False"...)
	case "null":
		return append(b, "None"...)
	// Python reads it as an int, which has no negative zero.
	case "-0":
		return append(b, '0')
	}

	if bytes.ContainsAny(token, ".eE") {
		return append(b, FloatRepr(ParseFloat(string(token)))...)
	}
	return append(b, token...)
}

// IsInteger reports whether Python reads a JSON number as an int.
func IsInteger(number string) bool { return !strings.ContainsAny(number, ".eE") }

// ParseFloat reads a JSON number. One that is too large is infinite, as in Python.
func ParseFloat(number string) float64 {
	x, _ := strconv.ParseFloat(number, 64)
	return x
}

// FloatRepr returns the shortest text that reads back as x, with an exponent where Python
// has one.
func FloatRepr(x float64) string {
	if math.IsInf(x, 0) {
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(x, 'g', -1, 64)), "+")
	}

	if size := math.Abs(x); x != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.FormatFloat(x, 'e', -1, 64)
	}
	// Python always shows that it is a float.
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if IsInteger(s) {
		s += ".0"
	}

	return s
}

// AppendQuoted appends the repr of a string. It is in single quotes unless it contains
// some and no double quotes. Unprintable characters are escaped.
func AppendQuoted(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}

	b = append(b, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < 0x7f && r >= ' ' || r > 0x7f && unicode.IsPrint(r):
			b = append(b, string(r)...)
		case r <= 0xff:
			b = fmt.Appendf(b, `\x%02x`, r)
		case r <= 0xffff:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = fmt.Appendf(b, `\U%08x`, r)
		}
	}

	return append(b, quote)
}
