package openapi

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"promptspool/api/wire"
)

// Pages returns the parts of the reference for people, as Markdown by the names of the pages:
// one for the requests of each part, and one for the objects that these contain.
func (d *Document) Pages() map[string]string {
	linked := map[string]bool{"ErrorBody": true}
	pages := make(map[string]string)
	for _, t := range parts {
		pages[t.Page] = (&page{d, t.Page, linked}).execute("part", t)
	}
	pages[objectsPage] = (&page{d, objectsPage, linked}).execute("shared", nil)

	return pages
}

// objectsPage is the page of the objects.
const objectsPage = "api-objects"

// Index lists all requests by their tags, with links into Pages.
func (d *Document) Index() string { return new(page).execute("calls", parts) }

// Spellings lists the other paths at which requests are served.
func (d *Document) Spellings() string { return new(page).execute("spellings", operations()) }

// page is one page of the reference. Links from it depend on where it is.
type page struct {
	document *Document
	name     string
	linked   map[string]bool // the names of objects, of all pages
}

//go:embed page.md.tmpl
var pageText string

// execute writes a page, or a list on one, as Markdown.
func (p *page) execute(name string, data any) string {
	functions := template.FuncMap{
		"anchor":    anchor,
		"cell":      cell,
		"curl":      p.curl,
		"described": p.described,
		"fields":    p.fields,
		"lines":     inLines,
		"media":     func(kind string) string { return cmp.Or(kind, MediaJSON) },
		"objects":   p.objects,
		"spaced":    func(paths string) string { return strings.Join(strings.Fields(paths), "`, `") },
		"type":      p.describeType,
	}

	var b strings.Builder
	texts := template.Must(template.New("").Funcs(functions).Parse(pageText))
	if err := texts.ExecuteTemplate(&b, name, data); err != nil {
		panic("openapi: " + err.Error())
	}

	return b.String()
}

// described returns the operation as the document has it.
func (p *page) described(o *operation) *Operation {
	method, path, _ := strings.Cut(o.Route, " ")
	return p.document.Paths[path][strings.ToLower(method)]
}

// nameOf returns the name of the schema that s refers to, or "" if it is not a reference.
func nameOf(s *jsonschema.Schema) string {
	return strings.TrimPrefix(s.Ref, "#/$defs/")
}

// curl returns the request as a command.
func (p *page) curl(o *operation) (string, error) {
	method, path, _ := strings.Cut(o.Route, " ")
	d, query := p.described(o), url.Values{}
	for _, v := range d.Parameters {
		switch {
		case v.Example == nil:
		case v.In == "path":
			path = strings.ReplaceAll(path, "{"+v.Name+"}", fmt.Sprint(v.Example))
		case v.In == "query":
			query.Set(v.Name, fmt.Sprint(v.Example))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}

	// Apps call their sidecar, everything else the server.
	address := "http://127.0.0.1:8788"
	if o.scope()&wire.ScopeApp != 0 && o.part.Page != sidecars {
		address = "http://127.0.0.1:8787"
	}

	command := "curl -s"
	// curl takes GET or, with a body, POST by itself.
	if method != "GET" && method != "POST" {
		command += " -X " + method
	}
	command += " '" + address + path + "' \\\n  -H \"X-API-KEY: $PROMPTSPOOL_KEY\""
	if o.takesProtobuf() {
		// The same in JSON is shown.
		command += " -H 'Content-Type: application/json'"
	}
	if o.Body == nil {
		return command, nil
	}

	kind := cmp.Or(o.Body.Media, MediaJSON)
	body := d.Body.Content[kind].Example.(json.RawMessage)
	// A line must stay one.
	if kind == MediaLines {
		return command + " -d '" + string(body) + "'", nil
	}
	text, err := inLines(body)

	return command + " -d '" + text + "'", err
}

// object is what a page shows of a schema: its members, or a link to where they are.
type object struct {
	Name, Description string
	Link              string
	Fields            []field
}

// field is a member of an object.
type field struct{ Name, Type, Description string }

// fields returns the members of an object, or a link to it if it has none. sent means that callers send it.
func (p *page) fields(s *jsonschema.Schema, sent bool) object {
	name := nameOf(s)
	definition := p.document.Components.Schemas[name]

	switch {
	case name == "":
		return object{}
	case !isTable(definition):
		return object{Link: p.link(name)}
	default:
		return object{Fields: p.members(definition, sent)}
	}
}

// isTable reports whether an object has members to show.
func isTable(s *jsonschema.Schema) bool { return s.Properties != nil && s.Properties.Len() > 0 }

// members returns the members of an object.
func (p *page) members(s *jsonschema.Schema, sent bool) (all []field) {
	for name, m := range s.Properties.FromOldest() {
		required := slices.Contains(s.Required, name)

		// Callers must know what they have to send, and what may be missing in an answer.
		kind := p.describeType(m, sent && required)
		if !sent && !required {
			kind += ", or absent"
		}
		all = append(all, field{name, kind, m.Description})
	}

	return all
}

// objects returns the objects to which links lead, also those of other objects.
func (p *page) objects() (all []object) {
	known := -1
	for known < len(p.linked) {
		known, all = len(p.linked), nil
		for _, name := range slices.Sorted(maps.Keys(p.linked)) {
			s := p.document.Components.Schemas[name]
			o := object{Name: name, Description: s.Description}
			// Only bodies that callers send are open to more members.
			if isTable(s) {
				o.Fields = p.members(s, s.AdditionalProperties == jsonschema.TrueSchema)
			}
			all = append(all, o)
		}
	}

	return all
}

// describeType returns the type of a value in words, with its bounds.
func (p *page) describeType(s *jsonschema.Schema, required bool) string {
	text := p.typeName(s)
	switch {
	case s.Minimum != "" && s.Maximum != "":
		text += ", " + string(s.Minimum) + " to " + string(s.Maximum)
	case s.Minimum != "":
		text += ", at least " + string(s.Minimum)
	case s.MaxLength != nil:
		text += fmt.Sprintf(", at most %d characters", *s.MaxLength)
	}
	if s.Default != nil {
		text += fmt.Sprintf(", by default %v", s.Default)
	}
	if required {
		text += ", required"
	}

	return text
}

// typeName returns the name of a type, with a link if it is an object of ours.
func (p *page) typeName(s *jsonschema.Schema) string {
	// See orNull.
	if nullable, ok := s.Extras["type"].([]string); ok {
		plain := *s
		plain.Type, plain.Extras = nullable[0], nil
		return p.typeName(&plain) + " or " + nullable[1]
	}

	var kinds []string
	for _, choice := range slices.Concat(s.AnyOf, s.OneOf) {
		kinds = append(kinds, p.typeName(choice))
	}
	for _, word := range s.Enum {
		if word == nil { // see orNull
			continue
		}
		kinds = append(kinds, fmt.Sprintf("`%v`", word))
	}

	switch {
	case kinds != nil:
		return strings.Join(kinds, " or ")
	case s.Ref != "":
		return p.link(nameOf(s))
	case s.PrefixItems != nil:
		return "array of a name and a number"
	case s.Items != nil:
		return "array of " + p.typeName(s.Items)
	case s.AdditionalProperties != nil && s.AdditionalProperties != jsonschema.TrueSchema:
		return "object of " + p.typeName(s.AdditionalProperties)
	case s.Format == "date-time":
		return "time"
	case s.Format != "":
		return s.Format
	case s.Type == "":
		return "any"
	default:
		return s.Type
	}
}

// link returns a link to where a schema is described.
func (p *page) link(name string) string {
	p.linked[name] = true
	file := ""
	if p.name != objectsPage {
		file = objectsPage + ".md"
	}

	return "[" + name + "](" + file + "#" + strings.ToLower(name) + ")"
}

// anchor returns the id that a heading gets.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(heading, ",", "")), " ", "-")
}

// cell returns a text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// columns is the maximum length of a line of an example, without its name.
const columns = 78

// oneLine removes the line breaks of json.Indent.
var oneLine = strings.NewReplacer("{\n", "{", "[\n", "[", "\n}", "}", "\n]", "]", ",\n", ", ")

// inLines returns JSON in lines. Objects and lists that fit into one stay in one.
func inLines(example json.RawMessage) (string, error) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, example, "", "  "); err != nil {
		return "", err
	}
	lines := strings.Split(indented.String(), "\n")

	for i := 0; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		if !strings.HasSuffix(text, "{") && !strings.HasSuffix(text, "[") {
			continue
		}

		// The object or list ends with the next line that is as far left.
		left := strings.TrimSuffix(lines[i], text)
		end := i + 1
		for ; strings.HasPrefix(lines[end], left+" "); end++ {
			text += "\n" + strings.TrimLeft(lines[end], " ")
		}
		text += "\n" + strings.TrimLeft(lines[end], " ")

		line := left + oneLine.Replace(text)
		value := strings.TrimSuffix(line[len(lines[i])-1:], ",")
		if len(left)+utf8.RuneCountInString(value) <= columns {
			lines = slices.Replace(lines, i, end+1, line)
		}
	}

	return strings.Join(lines, "\n"), nil
}
