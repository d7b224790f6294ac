package templates

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// shownFinding is a finding with the name that the form shows for its place.
type shownFinding struct {
	Field   string // of the form, such as "text-1"; "" if it is not about one
	Line    int    // in the field
	Place   string // such as "Message 2, line 1, column 7"
	Message string
}

// textPath matches the path of a finding in a text: the index of the message, and that of
// the block.
var textPath = regexp.MustCompile(`^(?:messages\[(\d+)\]\.)?(content\[(\d+)\])\.`)

// shownFindings names the places of findings.
func shownFindings(findings []wire.Finding) []shownFinding {
	shown := make([]shownFinding, len(findings))
	for i, f := range findings {
		shown[i] = shownFinding{Place: f.Path, Message: f.Message}

		m := textPath.FindStringSubmatch(f.Path)
		if m == nil {
			continue
		}

		// A completion has no messages. Its text is in the form's first one.
		index, name := 0, "Text"
		if m[1] != "" {
			index, _ = strconv.Atoi(m[1])
			name = fmt.Sprintf("Message %d", index+1)
		}
		if m[3] != "0" {
			name += ", " + m[2]
		} else {
			shown[i].Line = f.Line
		}

		shown[i].Field = "text-" + strconv.Itoa(index)
		shown[i].Place = fmt.Sprintf("%s, line %d, column %d", name, f.Line, f.Column)
	}

	return shown
}

// FindingsAt returns the findings about a field of the form, such as "text-1".
func (v editView) FindingsAt(field string) (at []shownFinding) {
	findings := v.Refused
	if len(findings) == 0 {
		findings = v.Preview.Findings
	}
	for _, f := range findings {
		if f.Field == field {
			at = append(at, f)
		}
	}

	return at
}

// keywords are those of JSON Schema whose values are checked, with the kinds of these.
var keywords = map[string]string{
	"type": "type", "required": "strings", "enum": "values",
	"title": "string", "description": "string", "format": "string", "pattern": "string", "$ref": "string",
	"properties": "schemas", "patternProperties": "schemas", "$defs": "schemas", "definitions": "schemas",
	"items": "schema", "additionalProperties": "schema", "contains": "schema", "not": "schema",
	"anyOf": "list", "oneOf": "list", "allOf": "list", "prefixItems": "list",
}

// kinds are those of values: the bytes with which one may begin, the kind of the values in it, and what
// a message calls it.
var kinds = map[string]struct{ begins, each, name string }{
	"type":    {`"[`, "type", "a type or a list of types"},
	"string":  {`"`, "", "a string"},
	"strings": {`[`, "string", "a list of strings"},
	"values":  {`[`, "", "a list of values"},
	"schema":  {`{tf`, "", `a schema, such as {"type": "string"}`},
	"schemas": {`{`, "schema", "an object with a schema for each name"},
	"list":    {`[`, "schema", "a list of schemas"},
}

var schemaTypes = strings.Fields("string number integer boolean object array null")

// schemaCheck walks through the parameters of a tool, which are a JSON Schema.
type schemaCheck struct {
	tool     int
	text     []byte
	findings []shownFinding
}

// schemaFindingsMax bounds what is reported about one tool.
const schemaFindingsMax = 10

// schemaFindings returns what of the parameters of tools no provider accepts. Text that is not JSON is
// left to publish.
func (d *draft) schemaFindings() (findings []shownFinding) {
	for i, t := range d.Tools {
		c := schemaCheck{tool: i, text: []byte(t.Parameters)}
		if jsonscan.Valid(c.text) {
			c.value("schema", jsonscan.SkipSpace(c.text, 0))
		}
		findings = append(findings, c.findings[:min(len(c.findings), schemaFindingsMax)]...)
	}

	return findings
}

// value checks the value at a byte, which must be of a kind.
func (c *schemaCheck) value(kind string, at int) {
	k, first := kinds[kind], c.text[at]

	switch {
	case !strings.ContainsRune(k.begins, rune(first)):
		c.report(at, "must be "+k.name)
	case kind == "type" && first == '"':
		name := jsonscan.Unquote(c.text[at:jsonscan.SkipValue(c.text, at)])
		if !slices.Contains(schemaTypes, name) {
			c.report(at, fmt.Sprintf("%q is not one of the types %s", name, strings.Join(schemaTypes, ", ")))
		}
	case first == '{' || first == '[':
		for m := jsonscan.Enter(c.text, at); m.Next(); m.At = jsonscan.SkipValue(c.text, m.At) {
			within := k.each
			if kind == "schema" {
				within = keywords[jsonscan.Unquote(m.Name)]
			}
			if within != "" {
				c.value(within, m.At)
			}
		}
	}
}

func (c *schemaCheck) report(at int, message string) {
	line, column := jsonscan.Position(c.text, at)
	c.findings = append(c.findings, shownFinding{
		Field:   "parameters-" + strconv.Itoa(c.tool),
		Line:    line,
		Place:   fmt.Sprintf("Tool %d, parameters, line %d, column %d", c.tool+1, line, column),
		Message: message,
	})
}
