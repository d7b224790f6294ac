package templates

import (
	"encoding/json"
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

	JSON string // the whole tool, if it is not in the fields; else ""
}

// newTool is what a tool that is edited as JSON begins with.
const newTool = "{\n  \"type\": \"\",\n  \"name\": \"\"\n}"

// draftToolFrom puts a tool into the form. One that the fields would change stays as JSON.
func draftToolFrom(raw json.RawMessage) draftTool {
	var tool, function map[string]json.RawMessage
	// The registry has checked it.
	_ = json.Unmarshal(raw, &tool)
	_ = json.Unmarshal(tool["function"], &function)
	t := draftTool{
		Name:        jsonText(function["name"]),
		Description: jsonText(function["description"]),
		More:        without(function, "name", "description", "parameters"),
	}
	if parameters := function["parameters"]; parameters != nil {
		t.Parameters = markup.Pretty(parameters)
	}

	hasFields := len(tool) == 2 && jsonText(tool["type"]) == "function" && t.Parameters != "null"
	if !hasFields || (t.Description != "") != (function["description"] != nil) {
		return draftTool{JSON: markup.Pretty(raw)}
	}

	return t
}

// tools returns the draft's tools as a blueprint has them.
func (d *draft) tools(faults *[]wire.FieldError) (tools []json.RawMessage) {
	for i, t := range d.Tools {
		place, tool := "Tool "+strconv.Itoa(i+1), map[string]json.RawMessage{}
		if t.JSON != "" {
			tool = d.object(place, t.JSON, faults)
		} else {
			function := d.object(place+", more", t.More, faults)
			function["name"] = encoded(t.Name)
			if t.Description != "" {
				function["description"] = encoded(t.Description)
			}
			if strings.TrimSpace(t.Parameters) != "" {
				function["parameters"] = encoded(d.object(place+", parameters", t.Parameters, faults))
			}
			tool["type"], tool["function"] = encoded("function"), encoded(function)
		}
		tools = append(tools, encoded(tool))
	}

	return tools
}
