package wire

import (
	"encoding/json"

	"promptspool/api/wire/jsonscan"
)

// TemplatePatch is the body of PATCH /rest/prompt-templates/{name or id}: what the next version has otherwise than its base. Members that are
// nil stay as they are, those that are JSON null are taken out. Raw members alias the body they were decoded from.
type TemplatePatch struct {
	Selector // of the base; the latest version if it is empty

	// An object replaces the elements whose indices are its members' names, an array all of them.
	Messages, Tools, Functions, Content json.RawMessage

	FunctionCall, ToolChoice json.RawMessage
	ModelParameters          json.RawMessage // an object, whose members go over those that are there
	ResponseFormat           json.RawMessage // the member of that name of the model's parameters

	CommitMessage string
	Labels        []string
	Author        string // who patches; "" for the identity's key. Not part of the body
}

// DecodePatch reads a patch.
func DecodePatch(object Object) (TemplatePatch, error) {
	f := fields{object: object}
	p := TemplatePatch{
		Selector:      Selector{Version: f.version("version"), Label: f.text("label", false, NameRunesMax)},
		CommitMessage: f.text("commit_message", false, CommitMessageRunesMax),
		Labels:        f.tags("release_labels"),
	}
	if p.Version > 0 && p.Label != "" {
		f.fault("label", "cannot stand beside version; give one of them")
	}
	p.Messages, p.Content = f.elementsOrAll("messages", false), f.elementsOrAll("content", false)
	p.Tools, p.Functions = f.elementsOrAll("tools", true), f.elementsOrAll("functions", true)
	p.FunctionCall, p.ToolChoice = f.nullable("function_call", "a string, an object or null", '"', '{'), f.nullable("tool_choice", "a string, an object or null", '"', '{')
	p.ResponseFormat = f.nullable("response_format", "an object or null", '{')
	p.ModelParameters = f.json("model_parameters", false)
	if _, twice := jsonscan.Lookup(p.ModelParameters, "response_format"); twice && p.ResponseFormat != nil {
		f.fault("response_format", "stands in model_parameters as well; give one of them")
	}
	f.labels("release_labels", p.Labels)
	return p, f.err()
}

// elementsOrAll reads an object or an array; null is one too where removable says so, else as if it were absent.
func (f *fields) elementsOrAll(name string, removable bool) json.RawMessage {
	v, _ := f.object.Get(name) // null too
	switch {
	case v == nil, string(v) == "null" && !removable:
		return nil
	case v[0] == '{', v[0] == '[', string(v) == "null":
		return v
	}
	f.fault(name, "must be an object of index and element, or an array of all elements")
	return nil
}

// nullable reads a value that begins with one of firsts, or null; nil if it is absent.
func (f *fields) nullable(name, what string, firsts ...byte) json.RawMessage {
	v, _ := f.object.Get(name) // null too
	if v == nil || string(v) == "null" {
		return v
	}
	for _, first := range firsts {
		if v[0] == first {
			return v
		}
	}
	f.fault(name, "must be %s", what)
	return nil
}
