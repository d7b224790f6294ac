package render

import (
	"fmt"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

const (
	snippetNameMax = 512   // of a name, and of a label
	snippetFence   = "@@@" // before and after a reference
	byVersion      = "@version_number:"
	byLabel        = "@label:"
)

// snippetPlace is where a snippet is: in the text as it was written (from, to), and in
// the expanded text (at, end).
type snippetPlace struct {
	snippet  Snippet
	from, to int
	at, end  int
}

// replaceSnippets replaces each reference with what replace returns, and lists the
// places. Everything else stays.
func replaceSnippets(
	source string, replace func(Snippet) (string, error),
) (string, []snippetPlace, error) {
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
		text, err := replace(s)
		if err != nil {
			return "", nil, err
		}

		// Both places are kept: findings are reported where the text was written.
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
type changeText func(at, format, text string) (string, error)

// eachText calls change for every text of a blueprint that may hold variables. It returns
// the blueprint with the changed texts, and with the variables that they brought added to
// input_variables.
func eachText(o wire.Object, change changeText) (wire.Object, error) {
	raw, ok := o.Get("messages")
	if !ok {
		added, err := eachTextOf(o, "content", change)
		if err != nil {
			return nil, err
		}
		return addVariables(o, added), nil
	}

	var all language.Names
	list := rawjson.Elements(raw)
	for i, e := range list {
		m := rawjson.Object(e)
		added, err := eachTextOf(m, fmt.Sprintf("messages[%d].content", i), change)
		if err != nil {
			return nil, err
		}
		if len(added) > 0 {
			all.Add(added...)
			m = addVariables(m, added)
		}
		list[i] = rawjson.Encode(m)
	}
	o = rawjson.Set(o, "messages", rawjson.Array(list))

	return addVariables(o, all.List), nil
}

// eachTextOf changes the texts in the content of o in place, and returns the variables of
// those that became different.
func eachTextOf(o wire.Object, at string, change changeText) ([]string, error) {
	raw, _ := o.Get("content")
	blocks := rawjson.Elements(raw)
	format := prompt.FormatOf(o)
	var used language.Names
	for i, e := range blocks {
		b := rawjson.Object(e)
		t, ok := textOf(b)
		if !ok {
			continue
		}
		changed, err := change(fmt.Sprintf("%s[%d]", at, i), format, t.text)
		if err != nil {
			return nil, err
		}
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

	return used.List, nil
}

// blockText is the text of a block that may hold variables. In blocks of images and media
// it is the url of an inner object.
type blockText struct {
	inner string // the member that holds the object; "" if the block itself holds the text
	name  string // of the member with the text
	text  string
}

func textOf(b wire.Object) (t blockText, ok bool) {
	kind, _ := b.Get("type")
	place := b
	switch kind := rawjson.Text(kind); kind {
	case "text":
		t.name = "text"
	case "image_url", "media":
		t.inner, t.name = kind, "url"
		v, _ := b.Get(kind)
		place = rawjson.Object(v)
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

	v, _ := b.Get(t.inner)
	inner := rawjson.Set(rawjson.Object(v), t.name, rawjson.Quote(text))

	return rawjson.Set(b, t.inner, rawjson.Encode(inner))
}

// addVariables appends to the input_variables of o those that are not listed yet.
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

	return rawjson.Set(o, "input_variables", quotedList(n.List))
}
