package render

import (
	"encoding/json"
	"fmt"
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
	snippetsMax     = 1000    // places that are filled, all levels together
	snippetBytesMax = 4 << 20 // bytes that are put in their places
	snippetNameMax  = 512     // of a name, and of a label
	snippetFence    = "@@@"   // stands before and behind a reference
	byVersion       = "@version_number:"
	byLabel         = "@label:"
)

// Snippet is a reference to another template, whose text is to stand in its place: @@@name@@@ (the latest version),
// @@@name@version_number:2@@@ or @@@name@label:prod@@@. Comparable.
type Snippet struct {
	Name    string
	Version int    // 0 if none is given
	Label   string // "" if none is given
}

// String is the reference as it is written, without the fences.
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
	Blueprint json.RawMessage // as Check made it, with its own snippets still in it
}

// Snippets lists what a blueprint that Check made refers to, in order of appearance, each once. It does not look into what they
// refer to themselves.
func Snippets(blueprint json.RawMessage) []Snippet {
	var list []Snippet
	seen := make(map[Snippet]bool)
	collect := func(_, _, text string) (string, error) {
		_, _, err := replaceSnippets(text, func(s Snippet) (string, error) {
			if !seen[s] {
				seen[s] = true
				list = append(list, s)
			}
			return "", nil
		})
		return text, err
	}
	_, _ = eachText(rawjson.Object(blueprint), collect)
	return list
}

// Expand puts the texts of snippets into their places in the texts and image urls of a blueprint that Check made, and adds their
// variables to input_variables. Only completions of text can be snippets. resolve says what a reference means; it is
// asked once for each. Snippets within snippets are expanded too; what they bring is not looked at again. Without references
// the blueprint comes back as it is. name is the blueprint's own, "" if unknown.
//
// Errors are resolve's, or wire.CodeInvalid: a circle, which is shown (a -> b -> a); a snippet that is not a text; more depth,
// places or bytes than are allowed.
func Expand(name string, blueprint json.RawMessage, resolve func(Snippet) (ResolvedSnippet, error)) (Expanded, error) {
	if !strings.Contains(string(blueprint), snippetFence) {
		return Expanded{Blueprint: blueprint}, nil
	}
	e := &expander{resolve: resolve, known: make(map[Snippet]snippetText)}
	if name != "" {
		e.path = []string{name}
	}

	joined := make(map[string]joinedText)
	o, err := eachText(rawjson.Object(blueprint), func(at, format, source string) (string, error) {
		text, places, err := e.text(at, format, source)
		if len(places) > 0 {
			joined[at] = joinedText{source, places}
		}
		return text, err
	})
	if err != nil || len(e.used) == 0 {
		return Expanded{Blueprint: blueprint}, err
	}

	return Expanded{rawjson.Encode(o), e.used, joined}, nil
}

// Expanded is a blueprint with the texts of its snippets in their places.
type Expanded struct {
	Blueprint json.RawMessage
	Used      []UsedSnippet // every reference that was followed, in order of appearance, each once

	joined map[string]joinedText // the texts that have snippets, by their place in the blueprint
}

// joinedText is where the snippets of a text are.
type joinedText struct {
	source string // as it was written
	places []snippetPlace
}

// snippetPlace is a snippet's place in a text as it was written, from and to, and as it was expanded, at and end.
type snippetPlace struct {
	snippet  Snippet
	from, to int
	at, end  int
}

// origin finds where a byte of the expanded text was written: within the source, or in a snippet, whose
// reference is then at that byte of the source.
func (t joinedText) origin(at int) (source int, in *Snippet) {
	for i := len(t.places) - 1; i >= 0; i-- {
		p := &t.places[i]
		switch {
		case at >= p.end:
			return at - p.end + p.to, nil
		case at >= p.at:
			return p.from, &p.snippet
		}
	}
	return at, nil
}

// UsedSnippet is a reference and the version that it led to, as a template's answer lists it.
type UsedSnippet struct {
	Name    string  `json:"prompt_name"`
	Version int     `json:"version"`
	Label   *string `json:"label"` // null if it was not by label
}

type expander struct {
	resolve func(Snippet) (ResolvedSnippet, error)
	known   map[Snippet]snippetText
	used    []UsedSnippet
	path    []string // the names that are being expanded, outermost first
	places  int
	bytes   int
}

// snippetText is a snippet with its own snippets expanded.
type snippetText struct{ name, format, text string }

// text expands the references in one text.
func (e *expander) text(at, format, source string) (string, []snippetPlace, error) {
	return replaceSnippets(source, func(s Snippet) (string, error) {
		if e.places++; e.places > snippetsMax {
			return "", snippetFault("%s uses more than %d snippets", at, snippetsMax)
		}
		t, err := e.follow(s)
		if err != nil {
			return "", err
		}
		if t.format != format && strings.ContainsAny(t.text, "{}") {
			return "", snippetFault("%s is in %s, and the snippet %s in %s; give both the same template_format", at, format, language.Shorten(s.String()), t.format)
		}
		if e.bytes += len(t.text); e.bytes > snippetBytesMax {
			return "", snippetFault("the snippets in %s are longer than %d MiB together", at, snippetBytesMax>>20)
		}
		return t.text, nil
	})
}

// follow gives the text of a reference.
func (e *expander) follow(s Snippet) (snippetText, error) {
	if t, ok := e.known[s]; ok {
		return t, nil
	}
	r, err := e.resolve(s)
	if err != nil {
		return snippetText{}, err
	}
	for i, name := range e.path {
		if name == r.Name {
			return snippetText{}, snippetFault("the snippets go in a circle: %s; take one of them out", strings.Join(append(e.path[i:], name), " -> "))
		}
	}
	if len(e.path) > snippetDepthMax {
		return snippetText{}, snippetFault("the snippets are nested deeper than %d: %s", snippetDepthMax, strings.Join(e.path, " -> "))
	}
	used := UsedSnippet{Name: r.Name, Version: r.Version}
	if s.Label != "" {
		used.Label = &s.Label
	}
	e.used = append(e.used, used)
	t := snippetText{name: r.Name}
	var source string
	if t.format, source, err = snippetSource(r); err != nil {
		return t, err
	}
	e.path = append(e.path, r.Name)
	t.text, _, err = e.text("the snippet "+language.Shorten(r.Name), t.format, source)
	e.path = e.path[:len(e.path)-1]
	if err == nil {
		e.known[s] = t
	}
	return t, err
}

// snippetSource is the text of a template that is used as a snippet.
func snippetSource(r ResolvedSnippet) (format, source string, err error) {
	o := rawjson.Object(r.Blueprint)
	content, _ := o.Get("content")
	kind, _ := o.Get("type")
	if rawjson.Text(kind) != "completion" {
		return "", "", snippetFault("%s is a %s, and only a completion can be a snippet", language.Shorten(r.Name), rawjson.Text(kind))
	}
	var b strings.Builder
	for i, e := range rawjson.Elements(content) {
		if kind := rawjson.Text(rawjson.Member(e, "type")); kind != "text" {
			return "", "", snippetFault("%s cannot be a snippet: its content[%d] is %q, and a snippet is text", language.Shorten(r.Name), i, language.Shorten(kind))
		}
		b.WriteString(rawjson.Text(rawjson.Member(e, "text")))
	}
	return prompt.FormatOf(o), b.String(), nil
}

func snippetFault(format string, args ...any) error {
	return wire.Invalid(wire.FieldError{Field: "prompt_template", Reason: "cannot be expanded: " + fmt.Sprintf(format, args...)})
}

// replaceSnippets puts what with gives in the place of each reference, and lists the places. What is not a reference stays.
func replaceSnippets(source string, with func(Snippet) (string, error)) (string, []snippetPlace, error) {
	var b strings.Builder
	var places []snippetPlace
	whole := len(source)
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
		if !ok { // the fence that would close it may open the next one
			b.WriteString(source[:start+len(snippetFence)])
			source = rest
			continue
		}
		text, err := with(s)
		if err != nil {
			return "", nil, err
		}

		p := snippetPlace{snippet: s, from: whole - len(source) + start}
		b.WriteString(source[:start])
		p.at = b.Len()
		b.WriteString(text)
		p.end = b.Len()
		source = rest[end+len(snippetFence):]
		p.to = whole - len(source)
		places = append(places, p)
	}
	if b.Len() == 0 {
		return source, places, nil
	}
	b.WriteString(source)

	return b.String(), places, nil
}

// parseSnippet reads what stands between the fences. Names may have an @ in them.
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
	ok := s.Name != "" && len(s.Name) <= 4*snippetNameMax && len(s.Label) <= 4*snippetNameMax && !strings.ContainsAny(inner, "\n\r")
	return s, ok && strings.TrimSpace(s.Name) == s.Name
}

// eachText gives every text of a blueprint that may hold variables to change, with its place and format, and returns the
// blueprint with what change made of it and with the variables that this brought in.
func eachText(o wire.Object, change func(at, format, text string) (string, error)) (wire.Object, error) {
	var all language.Names
	if raw, ok := o.Get("messages"); ok {
		list := rawjson.Elements(raw)
		for i, e := range list {
			m := rawjson.Object(e)
			brought, err := eachTextOf(m, fmt.Sprintf("messages[%d].content", i), change)
			if err != nil {
				return nil, err
			}
			if len(brought) > 0 {
				all.Add(brought...)
				m = addVariables(m, brought)
			}
			list[i] = rawjson.Encode(m)
		}
		o = rawjson.Set(o, "messages", rawjson.Array(list))
	} else {
		brought, err := eachTextOf(o, "content", change)
		if err != nil {
			return nil, err
		}
		all.Add(brought...)
	}
	return addVariables(o, all.List), nil
}

// eachTextOf changes the texts in the content of o, in its place, and returns the variables of those that became different.
func eachTextOf(o wire.Object, at string, change func(at, format, text string) (string, error)) ([]string, error) {
	raw, _ := o.Get("content")
	blocks := rawjson.Elements(raw)
	format := prompt.FormatOf(o)
	var used language.Names
	for i, e := range blocks {
		b := rawjson.Object(e)
		place, name := b, "text"
		kind, _ := b.Get("type")
		inner := innerOf[rawjson.Text(kind)]
		if inner != "" {
			v, _ := b.Get(inner)
			place, name = rawjson.Object(v), "url"
		}
		v, ok := place.Get(name)
		if !ok || inner == "" && rawjson.Text(kind) != "text" {
			continue
		}
		source := rawjson.Text(v)
		changed, err := change(fmt.Sprintf("%s[%d]", at, i), format, source)
		if err != nil {
			return nil, err
		}
		if changed == source {
			continue
		}
		used.Add(variables(format, changed)...)
		place = rawjson.Set(place, name, rawjson.Quote(changed))
		if inner != "" {
			place = rawjson.Set(b, inner, rawjson.Encode(place))
		}
		blocks[i] = rawjson.Encode(place)
	}
	if len(used.List) > 0 || len(blocks) > 0 {
		rawjson.Set(o, "content", rawjson.Array(blocks)) // it is there: raw came from it
	}
	return used.List, nil
}

// innerOf is the member, of a block of each type, whose url may hold variables.
var innerOf = map[string]string{"image_url": "image_url", "media": "media"}

func addVariables(o wire.Object, more []string) wire.Object {
	raw, _ := o.Get("input_variables")
	var n language.Names
	for _, e := range rawjson.Elements(raw) {
		n.Add(rawjson.Text(e))
	}
	before := len(n.List)
	n.Add(more...)
	if len(n.List) == before {
		return o
	}
	list := make([]json.RawMessage, len(n.List))
	for i, name := range n.List {
		list[i] = rawjson.Quote(name)
	}
	return rawjson.Set(o, "input_variables", rawjson.Array(list))
}
