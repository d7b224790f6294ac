package templates

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/dashboard/markup"
	"promptspool/api/wire"
)

// draftTool is a tool of a draft. A function has fields, anything else is edited as JSON.
type draftTool struct {
	Name        string
	Description string
	Parameters  string // a JSON Schema, or ""
	More        string // the function's other members: a JSON object, or ""

	Raw  bool   // the tool is JSON, and the fields above are empty
	JSON string // one tool, or a list of them
}

// draftToolFrom puts a tool into the form. One that the fields would change stays as JSON.
func draftToolFrom(raw json.RawMessage) draftTool {
	var tool struct{ Function map[string]json.RawMessage }
	_ = json.Unmarshal(raw, &tool) // anything but an object has no function
	t := draftTool{
		Name:        jsonText(tool.Function["name"]),
		Description: jsonText(tool.Function["description"]),
		More:        without(tool.Function, "name", "description", "parameters"),
	}
	if p := tool.Function["parameters"]; p != nil {
		t.Parameters = markup.Pretty(p)
	}

	var faults []wire.FieldError
	if canonical(encoded(t.function("", &faults))) != canonical(raw) {
		return draftTool{Raw: true, JSON: markup.Pretty(raw)}
	}

	return t
}

// canonical prints JSON without its whitespace and the order of its members.
func canonical(raw json.RawMessage) string {
	var v any
	_ = json.Unmarshal(raw, &v) // it was read before

	return string(encoded(v))
}

// function returns the tool that the fields describe.
func (t draftTool) function(place string, faults *[]wire.FieldError) map[string]any {
	var other draft
	function := other.object(place+", more", t.More, faults)
	function["name"] = encoded(t.Name)
	if t.Description != "" {
		function["description"] = encoded(t.Description)
	}
	if strings.TrimSpace(t.Parameters) != "" {
		other.object(place+", parameters", t.Parameters, faults)
		function["parameters"] = json.RawMessage(t.Parameters)
	}

	return map[string]any{"type": "function", "function": function}
}

// tools returns the draft's tools as a blueprint has them.
func (d *draft) tools(faults *[]wire.FieldError) (tools []any) {
	for i, t := range d.Tools {
		place := "Tool " + strconv.Itoa(i+1)
		if !t.Raw {
			tools = append(tools, t.function(place, faults))
			continue
		}

		// Tools that are copied from a call are a list.
		text, list := strings.TrimSpace(t.JSON), []json.RawMessage{}
		if !strings.HasPrefix(text, "[") {
			text = "[" + text + "]"
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			reason := jsonReason(t.JSON, "a tool, such as {\"type\": \"function\", ...}", err)
			*faults = append(*faults, wire.FieldError{Field: place, Reason: reason})
		}
		for _, tool := range list {
			tools = append(tools, tool)
		}
	}

	return tools
}

// applyToTools carries out a button about the tools, such as "add" or "remove-0".
func (d *draft) applyToTools(button string) {
	action, at, _ := strings.Cut(button, "-")
	i, err := strconv.Atoi(at)
	exists := err == nil && i >= 0 && i < len(d.Tools)

	switch {
	case action == "add" && len(d.Tools) < draftMessagesMax:
		d.Tools = append(d.Tools, draftTool{Parameters: firstParameters})
	case action == "json" && len(d.Tools) < draftMessagesMax:
		d.Tools = append(d.Tools, draftTool{Raw: true})
	case action == "remove" && exists:
		d.Tools = slices.Delete(d.Tools, i, i+1)
	case action == "up" && exists && i > 0:
		d.Tools[i-1], d.Tools[i] = d.Tools[i], d.Tools[i-1]
	}
}

// firstParameters are those of a new function: an example.
const firstParameters = `{
  "type": "object",
  "properties": {
    "order": {"type": "string", "description": "the number of an order"}
  },
  "required": ["order"]
}`

// schemaFindings returns what of the functions' parameters no provider accepts.
func (d *draft) schemaFindings() (findings []shownFinding) {
	for i, t := range d.Tools {
		for _, f := range schemaFaults(t.Parameters) {
			line, column := position(t.Parameters, f.at)
			findings = append(findings, shownFinding{
				Field:   "parameters-" + strconv.Itoa(i),
				Line:    line,
				Place:   fmt.Sprintf("Tool %d, parameters, line %d, column %d", i+1, line, column),
				Message: f.message,
			})
		}
	}

	return findings
}
