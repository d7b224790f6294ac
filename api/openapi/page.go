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

// Pages returns the parts of the reference for people, as Markdown by the names of the pages:
// one for the requests of each tag, and one for the objects that several of them share.
func (d *Document) Pages() map[string]string {
	r := &reference{document: d, uses: make(map[string]int), home: make(map[string]string)}
	r.settle()

	pages := make(map[string]string)
	for _, t := range parts {
		p := &page{reference: r, name: t.page}
		fmt.Fprintf(p, "# API: %s\n\n%s\n\n", t.Title, t.Description)
		p.WriteString("[API reference](api.md) says how a key is sent and lists all errors.\n\n" + generated)
		p.WriteString(t.list("") + "\n")
		for _, o := range t.Operations {
			p.section(o)
		}
		p.objects()
		pages[t.page] = p.String() + generatedEnd
	}

	p := &page{reference: r, name: objectsPage}
	p.WriteString("# API: shared objects\n\n" +
		"The objects that requests of several parts of the API send, or answer with.\n\n" + generated)
	p.objects()
	pages[objectsPage] = p.String() + generatedEnd

	return pages
}

// The marks around what is generated. Its lines may be long.
const (
	generated    = "<!-- generated: reference -->\n\n"
	generatedEnd = "<!-- end -->\n"
)

// objectsPage is the page of the objects that requests of several tags use.
const objectsPage = "api-objects"

// Index lists all requests by their tags, with links into Pages.
func (d *Document) Index() string {
	var b strings.Builder
	for _, t := range parts {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n%s\n", t.Name, t.Description, t.list(t.page+".md"))
	}

	return b.String()
}

// list returns a table of the requests of a part, which file describes; "" is the same page.
func (t *part) list(file string) string {
	var b strings.Builder
	b.WriteString("| Call | What it does | Scope |\n|---|---|---|\n")
	for _, o := range t.Operations {
		fmt.Fprintf(&b, "| `%s` | [%s](%s#%s) | %s |\n", o.Route, o.Summary, file, anchor(o.Summary), o.rights())
	}

	return b.String()
}

// Spellings lists the other paths at which requests are served.
func (d *Document) Spellings() string {
	var b strings.Builder
	b.WriteString("| Call | Also served at |\n|---|---|\n")
	for _, o := range operations() {
		if paths := strings.Fields(o.Older); len(paths) > 0 {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", o.Route, strings.Join(paths, "`, `"))
		}
	}

	return b.String()
}

// reference is what all parts of the reference know.
type reference struct {
	document *Document
	uses     map[string]int    // how many requests send or answer with a schema
	home     map[string]string // the page of each schema
}

// settle decides where each object is described: with the requests of a tag if only they lead to
// it, so that readers need not jump.
func (r *reference) settle() {
	for _, t := range parts {
		reached := make(map[string]bool)
		for _, o := range t.Operations {
			for _, schema := range r.schemasOf(o) {
				r.uses[schema]++
				r.reach(schema, reached)
			}
		}
		for name := range reached {
			if r.home[name] != "" {
				r.home[name] = objectsPage
			} else {
				r.home[name] = t.page
			}
		}
	}

	// Errors are answered by every request, without being among the schemas of one.
	errors := make(map[string]bool)
	r.reach("ErrorBody", errors)
	for name := range r.document.Components.Schemas {
		if errors[name] || r.home[name] == "" {
			r.home[name] = objectsPage
		}
	}
}

// reach adds a schema, and all to which its members lead.
func (r *reference) reach(name string, reached map[string]bool) {
	s := r.document.Components.Schemas[name]
	if s == nil || reached[name] {
		return
	}
	reached[name] = true

	for _, inner := range referred(s) {
		r.reach(inner, reached)
	}
}

// referred returns the names of the schemas that a schema refers to.
func referred(s *jsonschema.Schema) (names []string) {
	if s == nil || s == jsonschema.TrueSchema || s == jsonschema.FalseSchema {
		return nil
	}
	if s.Ref != "" {
		names = append(names, nameOf(s))
	}

	inner := slices.Concat(s.AnyOf, s.OneOf, s.AllOf, s.PrefixItems,
		[]*jsonschema.Schema{s.Items, s.AdditionalProperties})
	if s.Properties != nil {
		for m := s.Properties.Oldest(); m != nil; m = m.Next() {
			inner = append(inner, m.Value)
		}
	}
	for _, each := range inner {
		names = append(names, referred(each)...)
	}

	return names
}

// page writes one part of the reference, as Markdown.
type page struct {
	strings.Builder
	*reference
	name string
}

// described returns the operation as the document has it.
func (r *reference) described(o *operation) *Operation {
	method, path, _ := strings.Cut(o.Route, " ")
	return r.document.Paths[path][strings.ToLower(method)]
}

// schemasOf returns the names of the schemas of an operation's body and answers.
func (r *reference) schemasOf(o *operation) (names []string) {
	contents := []map[string]Media{}
	if body := r.described(o).Body; body != nil {
		contents = append(contents, body.Content)
	}
	for _, answer := range r.described(o).Responses {
		contents = append(contents, answer.Content)
	}

	for _, content := range contents {
		for _, media := range content {
			names = append(names, nameOf(media.Schema))
		}
	}

	return names
}

// nameOf returns the name of the schema that s refers to, or "" if it is not a reference.
func nameOf(s *jsonschema.Schema) string {
	return strings.TrimPrefix(s.Ref, "#/$defs/")
}

// section writes the section of an operation.
func (p *page) section(o *operation) {
	d := p.described(o)
	fmt.Fprintf(p, "## %s\n\n`%s` with a key of scope %s.", o.Summary, o.Route, o.rights())
	if o.Detail != "" {
		p.WriteString("\n\n" + o.Detail)
	}
	p.WriteString("\n\n")

	if len(d.Parameters) > 0 {
		p.WriteString("| Parameter | In | Type | Meaning |\n|---|---|---|---|\n")
		for _, v := range d.Parameters {
			kind := p.describeType(v.Schema, v.Required)
			fmt.Fprintf(p, "| `%s` | %s | %s | %s |\n", v.Name, v.In, kind, cell(v.Description))
		}
		p.WriteString("\n")
	}

	if d.Body != nil {
		for kind, media := range d.Body.Content {
			if kind == MediaOTLP {
				continue
			}
			p.WriteString("The body:\n\n")
			p.fields(media.Schema, true)
		}
	}

	p.example(o, d)
	p.answers(o, d)
}

// example writes the request as a command for curl.
func (p *page) example(o *operation, d *Operation) {
	method, path, _ := strings.Cut(o.Route, " ")
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
	if o.scope()&wire.ScopeApp != 0 && o.part.page != sidecars {
		address = "http://127.0.0.1:8787"
	}

	command, body := "curl -s", ""
	header := ` -H "X-API-KEY: $PROMPTSPOOL_KEY"`
	if d.Body != nil {
		for kind, media := range d.Body.Content {
			// The same in JSON is shown.
			if kind == MediaOTLP {
				header += " -H 'Content-Type: application/json'"
				continue
			}
			body = inLines(media.Example)

			// A line must stay one.
			if kind == MediaLines {
				body = fmt.Sprintf("%s", media.Example)
			}
			body = " -d '" + body + "'"
		}
	}

	// curl takes GET or, with a body, POST by itself.
	if method == "PUT" || method == "PATCH" || method == "DELETE" {
		command += " -X " + method
	}
	fmt.Fprintf(p, "```sh shown (an example)\n%s '%s%s' \\\n %s%s\n```\n\n",
		command, address, path, header, body)
}

// answers writes the successful answers, with an example of each, and the errors.
func (p *page) answers(o *operation, d *Operation) {
	for _, a := range o.Answers {
		media, ok := d.Responses[fmt.Sprint(a.Status)].Content[cmp.Or(a.Media, MediaJSON)]
		if a.Text != "" {
			fmt.Fprintf(p, "Answer %d: %s", a.Status, a.Text)
		}
		if !ok {
			p.WriteString("\n\n")
			continue
		}
		if a.Media != "" {
			fmt.Fprintf(p, " As `%s`:", a.Media)
		}
		p.WriteString("\n\n")

		// CSV has neither members nor lines to indent.
		if a.Media != MediaCSV {
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
	fmt.Fprintf(p, "[Errors](api.md#errors): %s.\n\n", strings.Join(statuses, ", "))
}

// fields writes the members of an object, or a link to them. sent means that callers send
// it.
func (p *page) fields(s *jsonschema.Schema, sent bool) {
	name := nameOf(s)

	switch definition := p.document.Components.Schemas[name]; {
	case name == "":
	case p.uses[name] > 1 || !isTable(definition):
		fmt.Fprintf(p, "Fields: %s.\n\n", p.link(name))
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
		kind := p.describeType(m.Value, sent && required)
		if !sent && !required {
			kind += ", or absent"
		}
		fmt.Fprintf(p, "| `%s` | %s | %s |\n", m.Key, kind, cell(m.Value.Description))
	}

	p.WriteString("\n")
}

// objects writes the schemas of the page that are not shown with the only request that uses them.
func (p *page) objects() {
	level := "## "
	if p.name != objectsPage {
		level = "### "
	}

	shown := &page{reference: p.reference, name: p.name}
	for _, name := range slices.Sorted(maps.Keys(p.document.Components.Schemas)) {
		s := p.document.Components.Schemas[name]
		if p.home[name] != p.name || p.uses[name] == 1 && isTable(s) {
			continue
		}

		fmt.Fprintf(shown, "%s%s\n\n", level, name)
		if s.Description != "" {
			shown.WriteString(s.Description + "\n\n")
		}

		// Only bodies that callers send are open to more members.
		if isTable(s) {
			shown.table(s, s.AdditionalProperties == jsonschema.TrueSchema)
		}
	}

	if shown.Len() > 0 && p.name != objectsPage {
		p.WriteString("## Objects\n\nObjects that several of these requests share, or that others contain.\n\n")
	}
	p.WriteString(shown.String())
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
	file := ""
	if p.home[name] != p.name {
		file = p.home[name] + ".md"
	}

	return "[" + name + "](" + file + "#" + strings.ToLower(name) + ")"
}

// anchor returns the id that a heading gets.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(heading, ",", "")), " ", "-")
}

// cell returns a text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// columns is the maximum length of a line of an example.
const columns = 78

// inLines returns JSON in lines. If it fits into one line, it stays in one.
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
		// Of an example that was encoded.
		panic("openapi: " + err.Error())
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
