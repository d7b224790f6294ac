package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// page writes the reference for people, as Markdown.
type page struct {
	strings.Builder
	document *Document
	uses     map[string]int // how many calls send or answer with a schema
}

// CallsTable returns a table of all calls, with links into the text of Reference.
func (d *Document) CallsTable() string {
	var b strings.Builder
	b.WriteString("| Call | What it does | Scope |\n|---|---|---|\n")

	for _, o := range operations() {
		older := ""
		for path := range strings.FieldsSeq(o.older) {
			older += " (`" + path + "`)"
		}
		fmt.Fprintf(&b, "| `%s`%s | [%s](#%s) | %s |\n", o.call, older, o.summary, anchor(o.summary), o.scope)
	}

	return b.String()
}

// Reference describes each call, and then the objects that several calls share.
func (d *Document) Reference() string {
	p := &page{document: d, uses: make(map[string]int)}

	// An object that only one call uses is shown with it, so that readers need not jump.
	all := operations()
	for _, o := range all {
		for _, schema := range p.schemasOf(&o) {
			p.uses[schema]++
		}
	}

	for _, t := range tags {
		fmt.Fprintf(p, "## %s\n\n%s\n\n", t.Name, t.Description)
		for _, o := range all {
			if o.tag == t.Name {
				p.call(&o)
			}
		}
	}
	p.objects()

	return strings.TrimSuffix(p.String(), "\n")
}

// described returns the operation as the document has it.
func (p *page) described(o *operation) *Operation {
	method, path, _ := strings.Cut(o.call, " ")
	return p.document.Paths[path][strings.ToLower(method)]
}

// schemasOf returns the names of the schemas of an operation's body and answers.
func (p *page) schemasOf(o *operation) (names []string) {
	contents := []map[string]Media{}
	if body := p.described(o).Body; body != nil {
		contents = append(contents, body.Content)
	}
	for _, r := range p.described(o).Responses {
		contents = append(contents, r.Content)
	}

	for _, content := range contents {
		for _, media := range content {
			names = append(names, nameOf(media.Schema))
		}
	}

	return names
}

// nameOf returns the name of the schema that s refers to, or "" if it is no reference.
func nameOf(s *jsonschema.Schema) string {
	return strings.TrimPrefix(s.Ref, "#/$defs/")
}

// call writes the section of a call.
func (p *page) call(o *operation) {
	d := p.described(o)
	fmt.Fprintf(p, "### %s\n\n`%s` with a key of scope `%s`.", o.summary, o.call, o.scope)
	if paths := strings.Fields(o.older); len(paths) > 0 {
		fmt.Fprintf(p, " Also served at `%s`.", strings.Join(paths, "`, `"))
	}
	if o.detail != "" {
		p.WriteString("\n\n" + o.detail)
	}
	p.WriteString("\n\n")

	if len(d.Parameters) > 0 {
		p.WriteString("| Parameter | In | Type | Meaning |\n|---|---|---|---|\n")
		for _, v := range d.Parameters {
			kind := describeType(v.Schema, v.Required)
			fmt.Fprintf(p, "| `%s` | %s | %s | %s |\n", v.Name, v.In, kind, cell(v.Description))
		}
		p.WriteString("\n")
	}

	if d.Body != nil {
		for kind, media := range d.Body.Content {
			if kind == mediaOTLP {
				continue
			}
			p.WriteString("The body:\n\n")
			p.fields(media.Schema, true)
		}
	}

	p.example(o, d)
	p.answers(o, d)
}

// example writes the call as a command for curl.
func (p *page) example(o *operation, d *Operation) {
	method, path, _ := strings.Cut(o.call, " ")
	query := url.Values{}
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
	if o.scope == wire.ScopeApp && o.tag != tagSync {
		address = "http://127.0.0.1:8787"
	}

	command, body := "curl -s", ""
	if d.Body != nil {
		for kind, media := range d.Body.Content {
			if kind == mediaOTLP { // the same in JSON is shown
				continue
			}
			body = inLines(media.Example)

			// A line must stay one.
			if kind == mediaLines {
				body = fmt.Sprintf("%s", media.Example)
			}
			body = " -d '" + body + "'"
		}
	}

	// curl takes GET or, with a body, POST by itself.
	if method == "PATCH" || method == "DELETE" {
		command += " -X " + method
	}
	header := ` -H "X-API-KEY: $PROMPTSPOOL_KEY"`
	fmt.Fprintf(p, "```sh shown (an example)\n%s '%s%s' \\\n %s%s\n```\n\n",
		command, address, path, header, body)
}

// answers writes the successful answers, with an example of each, and the errors.
func (p *page) answers(o *operation, d *Operation) {
	for _, a := range o.answers {
		media, ok := d.Responses[fmt.Sprint(a.status)].Content[cmp.Or(a.media, mediaJSON)]
		if a.text != "" {
			fmt.Fprintf(p, "Answer %d: %s", a.status, a.text)
		}
		if !ok {
			p.WriteString("\n\n")
			continue
		}
		if a.media != "" {
			fmt.Fprintf(p, " As `%s`:", a.media)
		}
		p.WriteString("\n\n")

		// CSV has neither members nor lines to indent.
		if a.media != mediaCSV {
			fmt.Fprintf(p, "```json shown (an example)\n%s\n```\n\n", inLines(media.Example))
			p.fields(media.Schema, false)
		} else {
			fmt.Fprintf(p, "```text\n%v```\n\n", media.Example)
		}
	}

	// Only errors refer to a shared response.
	var statuses []string
	for status, r := range d.Responses {
		if r.Ref != "" {
			statuses = append(statuses, status)
		}
	}
	slices.Sort(statuses)
	fmt.Fprintf(p, "[Errors](#errors): %s.\n\n", strings.Join(statuses, ", "))
}

// fields writes the members of an object, or a link to them. sent means that callers send
// it.
func (p *page) fields(s *jsonschema.Schema, sent bool) {
	name := nameOf(s)

	switch definition := p.document.Components.Schemas[name]; {
	case name == "":
	case p.uses[name] > 1 || !isTable(definition):
		fmt.Fprintf(p, "Fields: %s.\n\n", link(name))
	default:
		p.table(definition, sent)
	}
}

// isTable reports whether an object has members to show.
func isTable(s *jsonschema.Schema) bool { return s.Properties != nil && s.Properties.Len() > 0 }

// table writes the members of an object.
func (p *page) table(s *jsonschema.Schema, sent bool) {
	p.WriteString("| Field | Type | Meaning |\n|---|---|---|\n")
	for m := s.Properties.Oldest(); m != nil; m = m.Next() {
		required := slices.Contains(s.Required, m.Key)

		// Callers must know what they have to send, and what may be missing in an answer.
		kind := describeType(m.Value, sent && required)
		if !sent && !required {
			kind += ", or absent"
		}
		fmt.Fprintf(p, "| `%s` | %s | %s |\n", m.Key, kind, cell(m.Value.Description))
	}

	p.WriteString("\n")
}

// objects writes the schemas that are not shown with the only call that uses them.
func (p *page) objects() {
	p.WriteString("## Objects\n\nWhat several calls share, or other objects hold.\n\n")
	for _, name := range slices.Sorted(maps.Keys(p.document.Components.Schemas)) {
		s := p.document.Components.Schemas[name]
		if p.uses[name] == 1 && isTable(s) {
			continue
		}

		fmt.Fprintf(p, "### %s\n\n", name)
		if s.Description != "" {
			p.WriteString(s.Description + "\n\n")
		}

		// Only bodies that callers send are open to more members.
		if isTable(s) {
			p.table(s, s.AdditionalProperties == jsonschema.TrueSchema)
		}
	}
}

// describeType returns the type of a value in words, with its bounds.
func describeType(s *jsonschema.Schema, required bool) string {
	text := typeName(s)
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
func typeName(s *jsonschema.Schema) string {
	var kinds []string
	for _, choice := range slices.Concat(s.AnyOf, s.OneOf) {
		kinds = append(kinds, typeName(choice))
	}
	for _, word := range s.Enum {
		kinds = append(kinds, fmt.Sprintf("`%v`", word))
	}

	// See orNull.
	if nullable, ok := s.Extras["type"].([]string); ok {
		return strings.Join(nullable, " or ")
	}

	switch {
	case kinds != nil:
		return strings.Join(kinds, " or ")
	case s.Ref != "":
		return link(nameOf(s))
	case s.PrefixItems != nil:
		return "array of a name and a number"
	case s.Items != nil:
		return "array of " + typeName(s.Items)
	case s.AdditionalProperties != nil && s.AdditionalProperties != jsonschema.TrueSchema:
		return "object of " + typeName(s.AdditionalProperties)
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

func link(name string) string { return "[" + name + "](#" + strings.ToLower(name) + ")" }

// anchor returns the id that a heading gets.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(heading, ",", "")), " ", "-")
}

// cell returns a text that can stand in a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// columns is the maximum length of a line of an example.
const columns = 78

// inLines returns JSON in lines. What fits into one line stays in one.
func inLines(example any) string {
	var b strings.Builder
	writeIndented(&b, example.(json.RawMessage), 0)
	return b.String()
}

// oneLine removes the line breaks of json.Indent.
var oneLine = strings.NewReplacer("{\n", "{", "[\n", "[", "\n}", "}", "\n]", "]", ",\n", ", ")

// writeIndented writes a value that begins at a column.
func writeIndented(b *strings.Builder, raw json.RawMessage, indent int) {
	// json.Indent puts a space after a colon, which json.Marshal leaves out.
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, raw, "", ""); err != nil {
		panic("openapi: " + err.Error()) // of an example that was encoded
	}
	line := oneLine.Replace(spaced.String())
	if indent+utf8.RuneCountInString(line) <= columns || raw[0] != '{' && raw[0] != '[' {
		b.WriteString(line)
		return
	}

	inner := "\n" + strings.Repeat(" ", indent+2)
	if raw[0] == '[' {
		b.WriteByte('[')
		for i, element := range jsonscan.Elements(raw) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(inner)
			writeIndented(b, element, indent+2)
		}
		b.WriteString("\n" + strings.Repeat(" ", indent) + "]")
		return
	}

	b.WriteByte('{')
	first := true
	for m := range jsonscan.Members(raw) {
		if !first {
			b.WriteByte(',')
		}
		first = false

		name, _ := json.Marshal(m.Name)
		b.WriteString(inner + string(name) + ": ")
		writeIndented(b, m.Value, indent+2)
	}
	b.WriteString("\n" + strings.Repeat(" ", indent) + "}")
}
