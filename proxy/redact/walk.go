package redact

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unsafe"

	"promptspool/api/wire"
)

// kept are top-level fields that the server needs as they are: ids, times, scores, and the names of templates, scores and groups.
var kept = map[string]bool{
	"request_id": true, "function_name": true, "request_start_time": true, "request_end_time": true, "score": true, "score_id": true, "name": true,
	"prompt_name": true, "prompt_id": true, "prompt_version": true, "prompt_label": true, "version": true, "label": true, "group_id": true,
}

// nestedMax is how many strings of JSON are opened within each other.
const nestedMax = 3

// Body applies the rules to one write, a JSON object that json.Valid has accepted, and calls count for whatever is met, with the builtin's
// name, "pattern" or "path". The result is body itself when nothing was met, else a copy; body is not changed.
func (r *Rules) Body(body []byte, count func(rule, action string)) []byte {
	if r.Empty() {
		return body
	}
	w := walker{r: r, src: body, count: count}
	states := make([]state, len(r.paths))
	for i := range r.paths {
		states[i].rule = i
	}
	w.container(wire.SkipSpace(body, 0), states, "", true)
	return w.done()
}

// walker copies what it changes; all between is copied when the next change comes.
type walker struct {
	r      *Rules
	src    []byte
	out    []byte
	copied int // of src
	nested int // how many strings this lies in
	count  func(rule, action string)
}

func (w *walker) put(from, to int, text string) {
	if w.out == nil {
		w.out = make([]byte, 0, len(w.src)+len(w.src)/8)
	}
	w.out = append(append(w.out, w.src[w.copied:from]...), text...)
	w.copied = to
}

func (w *walker) done() []byte {
	if w.copied == 0 {
		return w.src
	}
	return append(w.out, w.src[w.copied:]...)
}

// container walks an object or array at i and returns the index behind it. force is the action of a path rule that met it, or "".
func (w *walker) container(i int, states []state, force string, top bool) int {
	object := w.src[i] == '{'
	prevEnd, any, dropped := i+1, false, false
	var renamed map[string]bool
	for n := 0; ; n++ {
		if i = wire.SkipSpace(w.src, i+1); w.src[i] == '}' || w.src[i] == ']' {
			return i + 1
		}
		start, name := i, ""
		nameEnd := i
		if object {
			nameEnd = wire.SkipString(w.src, i)
			name = unquote(w.src[i:nameEnd])
			i = wire.SkipSpace(w.src, wire.SkipSpace(w.src, nameEnd)+1)
		}
		left := top && kept[name]
		next, action := w.step(states, object, name, n)
		if left {
			action = ""
		}
		if action != "" {
			w.count("path", action)
		}
		if action == Drop {
			end := wire.SkipValue(w.src, i)
			if c := w.src[i]; top && (c == '{' || c == '[') { // the server wants one of its kind there
				if dropped && !any {
					w.put(w.copied, start, "")
				}
				w.put(i, end, map[byte]string{'{': "{}", '[': "[]"}[c])
				any, prevEnd = true, end
			} else {
				w.put(max(prevEnd, w.copied), end, "")
				dropped = true
			}
			i = end
		} else {
			if dropped && !any {
				w.put(w.copied, start, "")
			}
			if object && !top {
				renamed = w.name(start, nameEnd, name, renamed)
			}
			if action == "" {
				action = force
			}
			if left {
				i = wire.SkipValue(w.src, i)
			} else {
				i = w.value(i, next, action)
			}
			any, prevEnd = true, i
		}
		if i = wire.SkipSpace(w.src, i); w.src[i] != ',' {
			return i + 1
		}
	}
}

// value walks a value of any kind and returns the index behind it.
func (w *walker) value(i int, states []state, force string) int {
	switch c := w.src[i]; {
	case c == '{' || c == '[':
		return w.container(i, states, force, false)
	case c == '"':
		end := wire.SkipString(w.src, i)
		raw := w.src[i:end]
		if force != "" {
			w.put(i, end, `"`+w.r.replace(pathKind(force), force, unquote(raw))+`"`)
		} else if text, changed := w.text(unquote(raw)); changed {
			w.put(i, end, string(wire.AppendString(nil, text)))
		}
		return end
	default:
		end := wire.SkipValue(w.src, i)
		switch {
		case c != '-' && (c < '0' || c > '9'):
			if force != "" && c != 'n' { // true, false
				w.put(i, end, `"`+w.r.replace(pathKind(force), force, string(w.src[i:end]))+`"`)
			}
		case force != "":
			w.put(i, end, `"`+w.r.replace(pathKind(force), force, string(w.src[i:end]))+`"`)
		default:
			w.number(i, end)
		}
		return end
	}
}

// pathKind is what stands in the brackets where a path rule met something.
func pathKind(action string) kind {
	if action == Hash {
		return "hash"
	}
	return "masked"
}

// number redacts a number that is a card's.
func (w *walker) number(i, end int) {
	action := w.r.builtin["card"]
	if action == "" || end-i < 13 || end-i > 19 {
		return
	}
	var digits [19]byte
	for j := i; j < end; j++ {
		if w.src[j] < '0' || w.src[j] > '9' {
			return
		}
		digits[j-i] = w.src[j] - '0'
	}
	if isCard(digits[:end-i]) {
		w.count("card", action)
		w.put(i, end, `"`+w.r.replace("card", action, string(w.src[i:end]))+`"`)
	}
}

// name redacts a member's name, by what is built in only: a pattern for texts would tear up the names that are part of a format. Two
// that become the same are told apart by a number.
func (w *walker) name(start, end int, name string, renamed map[string]bool) map[string]bool {
	text, changed := w.scan(name)
	if !changed {
		return renamed
	}
	if renamed == nil {
		renamed = map[string]bool{}
	}
	for n, base := 2, text; renamed[text]; n++ {
		text = base + "~" + strconv.Itoa(n)
	}
	renamed[text] = true
	w.put(start, end, string(wire.AppendString(nil, text)))
	return renamed
}

// text redacts a string's text, and the JSON in it, if that is what it is.
func (w *walker) text(text string) (string, bool) {
	if trimmed := strings.TrimLeft(text, " \t\r\n"); w.nested < nestedMax && len(trimmed) > 1 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(text)) {
		inner := walker{r: w.r, src: []byte(text), nested: w.nested + 1, count: w.count}
		inner.value(wire.SkipSpace(inner.src, 0), nil, "")
		out := inner.done()
		return string(out), inner.copied > 0
	}
	return w.plain(text)
}

// scan redacts what is built in.
func (w *walker) scan(text string) (string, bool) {
	out, copied := []byte(nil), 0
	if len(w.r.builtin) > 0 {
		for from := 0; ; {
			k, start, end := w.r.scans.next(text, from)
			if end == 0 {
				break
			}
			action := w.r.builtin[k]
			w.count(string(k), action)
			out = append(append(out, text[copied:start]...), w.r.replace(k, action, text[start:end])...)
			from, copied = end, end
		}
	}
	if copied == 0 {
		return text, false
	}
	return string(append(out, text[copied:]...)), true
}

// plain redacts a text that holds no JSON.
func (w *walker) plain(text string) (string, bool) {
	text, changed := w.scan(text)
	for _, p := range w.r.patterns {
		if !p.re.MatchString(text) {
			continue
		}
		text = p.re.ReplaceAllStringFunc(text, func(met string) string {
			if met == "" {
				return ""
			}
			changed = true
			w.count("pattern", p.action)
			return w.r.replace("pattern", p.action, met)
		})
	}
	return text, changed
}

// unquote returns the text of a valid JSON string.
func unquote(raw []byte) string {
	inner := raw[1 : len(raw)-1]
	i := bytes.IndexByte(inner, '\\')
	if i < 0 {
		return unsafe.String(unsafe.SliceData(inner), len(inner)) // the body is not changed while this is looked at
	}
	text := make([]byte, 0, len(inner))
	for ; i >= 0; i = bytes.IndexByte(inner, '\\') {
		plain := strings.IndexByte(escapes, inner[i+1])
		if plain < 0 {
			return wire.Unquote(raw) // \u and its pairs
		}
		text = append(append(text, inner[:i]...), escaped[plain])
		inner = inner[i+2:]
	}
	text = append(text, inner...)
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// escapes are the escapes of one character (RFC 8259), and escaped is what each stands for.
const (
	escapes = `nt"\/rbf`
	escaped = "\n\t\"\\/\r\b\f"
)
