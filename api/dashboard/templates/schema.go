package templates

import (
	"fmt"
	"slices"
	"strings"

	"promptspool/api/closest"
	"promptspool/api/wire/jsonscan"
)

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

// schemaFault is a place in a JSON Schema, and what is wrong there.
type schemaFault struct {
	at      int // the byte
	message string
}

// schemaFaultsMax bounds what is reported about one schema.
const schemaFaultsMax = 10

// schemaFaults checks the basic shape of a JSON Schema. Text that is not JSON has no faults here.
func schemaFaults(text string) []schemaFault {
	c := schemaCheck{text: []byte(text)}
	if jsonscan.Valid(c.text) {
		c.value("schema", jsonscan.SkipSpace(c.text, 0))
	}

	return c.faults[:min(len(c.faults), schemaFaultsMax)]
}

// schemaCheck walks through a JSON Schema.
type schemaCheck struct {
	text   []byte
	faults []schemaFault
}

// value checks the value at a byte, which must be of a kind.
func (c *schemaCheck) value(kind string, at int) {
	k, first := kinds[kind], c.text[at]
	switch {
	case !strings.ContainsRune(k.begins, rune(first)):
		c.fault(at, "must be "+k.name)
	case kind == "type" && first == '"':
		c.typeName(at)
	case first != '{' && first != '[' || k.each == "" && kind != "schema":
		return
	default:
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

// typeName checks the name of a type.
func (c *schemaCheck) typeName(at int) {
	name := jsonscan.Unquote(c.text[at:jsonscan.SkipValue(c.text, at)])
	if slices.Contains(schemaTypes, name) {
		return
	}

	message := fmt.Sprintf("%q is not a type: use %s", name, strings.Join(schemaTypes, ", "))
	if near := closest.Among(name, schemaTypes); len(near) > 0 {
		message = fmt.Sprintf("%q is not a type: did you mean %q?", name, near[0])
	}
	c.fault(at, message)
}

func (c *schemaCheck) fault(at int, message string) {
	c.faults = append(c.faults, schemaFault{at, message})
}
