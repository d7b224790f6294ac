package wire

import (
	"bytes"
	"encoding/json"

	"promptspool/api/wire/jsonscan"
)

// TemplatePatch is the body of PATCH /rest/prompt-templates/{name or id}: how the next
// version differs from its base. Raw members that are nil stay as they are, and those
// that are JSON null are removed. They alias the body that they were decoded from.
type TemplatePatch struct {
	Selector // the base; the zero Selector is the latest version

	// An array replaces all elements; an object replaces those whose indices are its
	// members' names.
	Messages, Tools, Functions, Content json.RawMessage

	FunctionCall, ToolChoice json.RawMessage
	ModelParameters          json.RawMessage // an object; its members overwrite the existing ones
	ResponseFormat           json.RawMessage // the model parameter of that name

	CommitMessage string
	Labels        []string
	Author        string // "" is the identity's key. Not part of the body
}

// DecodePatch reads a patch.
func DecodePatch(object Object) (TemplatePatch, error) {
	const choice = "a string, an object or null"

	f := fields{object: object}
	p := TemplatePatch{
		Selector:      Selector{Version: f.version("version"), Label: f.text("label", false, NameRunesMax)},
		CommitMessage: f.text("commit_message", false, CommitMessageRunesMax),
		Labels:        f.tags("release_labels"),
	}
	if p.Version > 0 && p.Label != "" {
		f.fault("label", "cannot be combined with version; give one of them")
	}

	p.Messages = f.elements("messages", false)
	p.Content = f.elements("content", false)
	p.Tools = f.elements("tools", true)
	p.Functions = f.elements("functions", true)
	p.FunctionCall = f.nullable("function_call", choice, `"{`)
	p.ToolChoice = f.nullable("tool_choice", choice, `"{`)
	p.ResponseFormat = f.nullable("response_format", "an object or null", "{")
	p.ModelParameters = f.json("model_parameters", false)
	if _, twice := jsonscan.Lookup(p.ModelParameters, "response_format"); twice && p.ResponseFormat != nil {
		f.fault("response_format", "is in model_parameters as well; give one of them")
	}
	f.labels("release_labels", p.Labels)

	return p, f.err()
}

// elements reads an object or an array. null counts as absent, unless the elements are
// removable.
func (f *fields) elements(name string, removable bool) json.RawMessage {
	v, _ := f.object.Get(name) // also null
	switch {
	case v == nil, string(v) == "null" && !removable:
		return nil
	case v[0] == '{', v[0] == '[', string(v) == "null":
		return v
	}

	f.fault(name, "must be an object of index and element, or an array of all elements")
	return nil
}

// nullable reads null or a value that begins with one of firsts; nil if it is absent.
func (f *fields) nullable(name, kinds, firsts string) json.RawMessage {
	v, _ := f.object.Get(name) // also null
	if v == nil || string(v) == "null" || bytes.IndexByte([]byte(firsts), v[0]) >= 0 {
		return v
	}

	f.fault(name, "must be %s", kinds)
	return nil
}
