package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// Bounds of the snippets in one blueprint.
const (
	snippetDepthMax = 16      // snippets within snippets
	snippetsMax     = 1000    // references that are filled in, on all levels together
	snippetBytesMax = 4 << 20 // bytes that are filled in
)

// Snippet is a reference to another template whose text replaces it. It is written as
// @@@name@@@ (the latest version), @@@name@version_number:2@@@ or @@@name@label:prod@@@.
// Comparable.
type Snippet struct {
	Name    string
	Version int    // 0 if none is given
	Label   string // "" if none is given
}

// String returns the reference as it is written, without the fences.
func (s Snippet) String() string {
	switch {
	case s.Version > 0:
		return s.Name + byVersion + strconv.Itoa(s.Version)
	case s.Label != "":
		return s.Name + byLabel + s.Label
	}

	return s.Name
}

// ResolvedSnippet is the version that a reference means.
type ResolvedSnippet struct {
	Name      string
	Version   int
	Blueprint json.RawMessage // checked, with its own snippets not yet filled in
}

// Snippets lists the references in a checked blueprint, each once, in order of
// appearance. It does not follow them.
func Snippets(blueprint json.RawMessage) []Snippet {
	var list []Snippet
	seen := make(map[Snippet]bool)
	note := func(s Snippet) string {
		if !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
		return ""
	}
	collect := func(_, _, text string) string {
		replaceSnippets(text, note)
		// The text is only looked at.
		return text
	}
	eachText(rawjson.Object(blueprint), collect)

	return list
}

// Expand fills in the snippets in the texts and image urls of a checked blueprint. It
// adds their variables to input_variables. name is the blueprint's own, "" if unknown.
//
// Only completions of text can be snippets. Snippets within snippets are expanded too;
// what they bring is not searched again. resolve finds what a reference means, and is
// called once for each. Without references the blueprint is returned as it is.
//
// Errors are resolve's, or wire.CodeInvalid: a cycle, which is shown (a -> b -> a); a
// snippet that is not a text; more depth, references or bytes than allowed.
func Expand(
	name string, blueprint json.RawMessage, resolve func(Snippet) (ResolvedSnippet, error),
) (Expanded, error) {
	if !strings.Contains(string(blueprint), snippetFence) {
		return Expanded{Blueprint: blueprint}, nil
	}

	e := &expander{resolve: resolve, known: make(map[Snippet]snippetText)}
	if name != "" {
		// Its own name is on the path, or a snippet that leads back here would
		// be followed once before the circle is seen.
		e.path = []string{name}
	}
	written := make(map[string]writtenText)
	o := eachText(rawjson.Object(blueprint), func(at, format, source string) string {
		text := e.text(at, format, source)
		if text != source {
			written[at] = writtenText{format, source}
		}
		return text
	})
	if e.err != nil || len(e.used) == 0 {
		return Expanded{Blueprint: blueprint}, e.err
	}

	return Expanded{rawjson.Encode(o), e.used, written}, nil
}

// Expanded is a blueprint with the texts of its snippets filled in.
type Expanded struct {
	Blueprint json.RawMessage
	Used      []wire.UsedSnippet // every reference that was followed, each once, in order of appearance

	written map[string]writtenText // the texts that have snippets, by their place in the blueprint
}

// writtenText is a text before its snippets are filled in.
type writtenText struct{ format, source string }

// expander fills in snippets. After the first error, err, it resolves no more.
type expander struct {
	resolve func(Snippet) (ResolvedSnippet, error)
	err     error
	known   map[Snippet]snippetText
	used    []wire.UsedSnippet
	path    []string // the names that are being expanded, outermost first
	count   int
	bytes   int
}

// snippetText is a snippet with its own snippets filled in.
type snippetText struct{ name, format, text string }

// text fills in the references in one text.
func (e *expander) text(at, format, source string) string {
	return replaceSnippets(source, func(s Snippet) string {
		if e.count++; e.count > snippetsMax {
			e.reject("%s uses more than %d snippets", at, snippetsMax)
		}
		t := e.follow(s)

		// Braces mean different things in different formats.
		if t.format != format && strings.ContainsAny(t.text, "{}") {
			e.reject("%s is in %s, and the snippet %s in %s; give both the same template_format",
				at, format, language.Shorten(s.String()), t.format)
		}
		// Snippets within snippets can double at each level: a
		// few lines would become gigabytes.
		if e.bytes += len(t.text); e.bytes > snippetBytesMax {
			e.reject("the snippets in %s are longer than %d MiB together", at, snippetBytesMax>>20)
			return ""
		}

		return t.text
	})
}

// reject keeps the first reason why the blueprint cannot be expanded.
func (e *expander) reject(format string, args ...any) {
	if e.err == nil {
		e.err = wire.Invalid(wire.FieldError{
			Field:  "prompt_template",
			Reason: "cannot be expanded: " + fmt.Sprintf(format, args...),
		})
	}
}

// follow returns the text of a reference.
func (e *expander) follow(s Snippet) snippetText {
	if t, ok := e.known[s]; ok || e.err != nil {
		return t
	}
	r, err := e.resolve(s)
	if err != nil {
		e.err = err
		return snippetText{}
	}
	e.checkPath(r.Name)

	used := wire.UsedSnippet{Name: r.Name, Version: r.Version}
	if s.Label != "" {
		used.Label = &s.Label
	}
	e.used = append(e.used, used)

	t := snippetText{name: r.Name}
	// The path finds cycles; known makes a snippet that is used twice cheap.
	var source string
	t.format, source = e.source(r)
	e.path = append(e.path, r.Name)
	t.text = e.text("the snippet "+language.Shorten(r.Name), t.format, source)
	e.path = e.path[:len(e.path)-1]
	e.known[s] = t

	return t
}

// checkPath rejects a snippet that contains itself, and one that is nested too deep.
func (e *expander) checkPath(name string) {
	if i := slices.Index(e.path, name); i >= 0 {
		e.reject("the snippets go in a circle: %s; take one of them out",
			strings.Join(append(e.path[i:], name), " -> "))
	}
	if len(e.path) > snippetDepthMax {
		e.reject("the snippets are nested deeper than %d: %s",
			snippetDepthMax, strings.Join(e.path, " -> "))
	}
}

// source returns the text of a template that is used as a snippet.
func (e *expander) source(r ResolvedSnippet) (format, source string) {
	o := rawjson.Object(r.Blueprint)
	kind := rawjson.Text(rawjson.Of(o, "type"))
	if kind != "completion" {
		e.reject("%s is a %s, and only a completion can be a snippet",
			language.Shorten(r.Name), kind)
	}

	var b strings.Builder
	for i, block := range rawjson.Elements(rawjson.Of(o, "content")) {
		if kind := rawjson.Text(rawjson.Member(block, "type")); kind != "text" {
			e.reject("%s cannot be a snippet: its content[%d] is %q, and a snippet is text",
				language.Shorten(r.Name), i, language.Shorten(kind))
		}
		b.WriteString(rawjson.Text(rawjson.Member(block, "text")))
	}

	return prompt.FormatOf(o), b.String()
}

const (
	snippetNameMax = 512   // of a name, and of a label
	snippetFence   = "@@@" // before and after a reference
	byVersion      = "@version_number:"
	byLabel        = "@label:"
)

// replaceSnippets replaces each reference with what replace returns. Everything else stays.
func replaceSnippets(source string, replace func(Snippet) string) string {
	var b strings.Builder
	for {
		start := strings.Index(source, snippetFence)
		if start < 0 {
			break
		}
		rest := source[start+len(snippetFence):]
		end := strings.Index(rest, snippetFence)
		if end < 0 {
			break
		}

		s, ok := parseSnippet(rest[:end])
		// The fence that would close it may open the next one.
		if !ok {
			b.WriteString(source[:start+len(snippetFence)])
			source = rest
			continue
		}
		b.WriteString(source[:start])
		b.WriteString(replace(s))
		source = rest[end+len(snippetFence):]
	}
	b.WriteString(source)

	return b.String()
}

// parseSnippet reads what is between the fences. Names may contain an @.
func parseSnippet(inner string) (Snippet, bool) {
	s := Snippet{Name: inner}
	if i := strings.LastIndex(inner, byVersion); i >= 0 {
		n, err := strconv.Atoi(inner[i+len(byVersion):])
		if err != nil || n <= 0 {
			return s, false
		}
		s.Name, s.Version = inner[:i], n
	} else if i := strings.LastIndex(inner, byLabel); i >= 0 {
		s.Name, s.Label = inner[:i], inner[i+len(byLabel):]
		if s.Label == "" {
			return s, false
		}
	}
	// A character has at most 4 bytes. A name that is still too long is not found.
	isShort := len(s.Name) <= 4*snippetNameMax && len(s.Label) <= 4*snippetNameMax
	isName := s.Name != "" && strings.TrimSpace(s.Name) == s.Name

	return s, isShort && isName && !strings.ContainsAny(inner, "\n\r")
}

// changeText returns a text's replacement. at is its place, format its template format.
type changeText func(at, format, text string) string

// eachText calls change for every text of a blueprint that may hold variables. It returns
// the blueprint with the changed texts, and with the variables that they brought added to
// input_variables.
func eachText(o wire.Object, change changeText) wire.Object {
	raw, ok := o.Get("messages")
	if !ok {
		return addVariables(o, eachTextOf(o, "content", change))
	}

	var all language.Names
	list := rawjson.Elements(raw)
	for i, e := range list {
		m := rawjson.Object(e)
		added := eachTextOf(m, fmt.Sprintf("messages[%d].content", i), change)
		all.Add(added...)
		list[i] = rawjson.Encode(addVariables(m, added))
	}
	o = rawjson.Set(o, "messages", rawjson.Array(list))

	return addVariables(o, all.List)
}

// eachTextOf changes the texts in the content of o in place, and returns the variables of
// those that became different.
func eachTextOf(o wire.Object, at string, change changeText) []string {
	blocks := rawjson.Elements(rawjson.Of(o, "content"))
	format := prompt.FormatOf(o)
	var used language.Names
	for i, e := range blocks {
		b := rawjson.Object(e)
		t, ok := textOf(b)
		if !ok {
			continue
		}
		changed := change(fmt.Sprintf("%s[%d]", at, i), format, t.text)
		// Most texts have no snippets: their blocks keep their bytes.
		if changed == t.text {
			continue
		}
		used.Add(variables(format, changed)...)
		blocks[i] = rawjson.Encode(t.replaced(b, changed))
	}

	if len(blocks) > 0 {
		// In place: o has a content.
		rawjson.Set(o, "content", rawjson.Array(blocks))
	}

	return used.List
}

// blockText is the text of a block that may hold variables. In blocks of images and media
// it is the url of an inner object.
type blockText struct {
	inner string // the member that holds the object; "" if the block itself holds the text
	name  string // of the member with the text
	text  string
}

func textOf(b wire.Object) (t blockText, ok bool) {
	place := b
	switch kind := rawjson.Text(rawjson.Of(b, "type")); kind {
	case "text":
		t.name = "text"
	case "image_url", "media":
		t.inner, t.name = kind, "url"
		place = rawjson.Object(rawjson.Of(b, kind))
	default:
		return t, false
	}

	v, ok := place.Get(t.name)
	t.text = rawjson.Text(v)

	return t, ok
}

// replaced returns the block with another text.
func (t blockText) replaced(b wire.Object, text string) wire.Object {
	if t.inner == "" {
		return rawjson.Set(b, t.name, rawjson.Quote(text))
	}

	inner := rawjson.Set(rawjson.Object(rawjson.Of(b, t.inner)), t.name, rawjson.Quote(text))

	return rawjson.Set(b, t.inner, rawjson.Encode(inner))
}

// addVariables appends to the input_variables of o those that are not listed yet.
func addVariables(o wire.Object, more []string) wire.Object {
	var n language.Names
	for _, e := range rawjson.Elements(rawjson.Of(o, "input_variables")) {
		n.Add(rawjson.Text(e))
	}

	before := len(n.List)
	n.Add(more...)
	if len(n.List) == before {
		return o
	}

	return rawjson.Set(o, "input_variables", rawjson.ArrayOf(n.List, rawjson.Quote))
}
