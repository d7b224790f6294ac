package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire"
)

// Patch publishes the version that p makes of its base: what p does not name stays. A patch that changes nothing makes no version,
// unless its base is not the latest. wire.CodeInvalid names what does not fit the base; other errors as Publish.
func (r *Registry) Patch(ctx context.Context, id wire.Identity, ident string, p wire.TemplatePatch) (wire.Published, error) {
	base, err := r.source(ctx, id.Account, ident, p.Selector)
	if err != nil {
		return wire.Published{}, err
	}
	blueprint, err := patchBlueprint(base.Blueprint, p)
	if err != nil {
		return wire.Published{}, err
	}
	metadata, err := patchMetadata(base.Metadata, p)
	if err != nil {
		return wire.Published{}, err
	}
	return r.Publish(ctx, id, wire.Publish{
		Name: base.Name, Blueprint: blueprint, Metadata: metadata, CommitMessage: p.CommitMessage, Labels: p.Labels, Author: p.Author,
	})
}

// patchBlueprint puts a patch over a blueprint. The order of members may change; it means nothing.
func patchBlueprint(blueprint json.RawMessage, p wire.TemplatePatch) (json.RawMessage, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(blueprint, &o); err != nil {
		return nil, err
	}
	isChat := string(o["type"]) == `"chat"`
	for _, m := range []struct {
		name   string
		change json.RawMessage
		chat   bool // of chats only; else of completions
		whole  bool // replaced as it is
	}{
		{"messages", p.Messages, true, false}, {"tools", p.Tools, true, false}, {"functions", p.Functions, true, false},
		{"function_call", p.FunctionCall, true, true}, {"tool_choice", p.ToolChoice, true, true}, {"content", p.Content, false, false},
	} {
		switch {
		case m.change == nil:
			continue
		case m.chat != isChat:
			return nil, wire.Invalid(wire.FieldError{Field: m.name, Reason: "does not fit: the base is " + map[bool]string{true: "a chat", false: "a completion"}[isChat]})
		case string(m.change) == "null":
			delete(o, m.name)
		case m.whole || m.change[0] == '[':
			o[m.name] = m.change
		default:
			elements, err := patchElements(m.name, o[m.name], m.change)
			if err != nil {
				return nil, err
			}
			o[m.name] = elements
		}
	}
	delete(o, "input_variables") // they are found anew
	return json.Marshal(o)
}

// patchElements replaces elements of an array by their indices. One behind the last is added.
func patchElements(name string, array, change json.RawMessage) (json.RawMessage, error) {
	var elements []json.RawMessage
	if array != nil {
		if err := json.Unmarshal(array, &elements); err != nil {
			return nil, err
		}
	}
	var by map[string]json.RawMessage
	if err := json.Unmarshal(change, &by); err != nil {
		return nil, err
	}
	for range by { // added elements may come in any order
		for text, element := range by {
			i, err := strconv.Atoi(text)
			if err != nil || i < 0 || i >= len(elements)+len(by) {
				return nil, wire.Invalid(wire.FieldError{Field: name + "." + text, Reason: fmt.Sprintf("is not an index: the list has %s, counted from 0", english.Plural(len(elements), "element", ""))})
			}
			switch {
			case i < len(elements):
				elements[i] = element
				delete(by, text)
			case i == len(elements):
				elements = append(elements, element)
				delete(by, text)
			}
		}
	}
	for text := range by {
		return nil, wire.Invalid(wire.FieldError{Field: name + "." + text, Reason: fmt.Sprintf("is not an index: the list has %s, counted from 0", english.Plural(len(elements), "element", ""))})
	}
	return json.Marshal(elements)
}

// patchMetadata puts a patch's parameters over those of the model.
func patchMetadata(metadata json.RawMessage, p wire.TemplatePatch) (json.RawMessage, error) {
	if p.ModelParameters == nil && p.ResponseFormat == nil {
		return metadata, nil
	}
	model, ok := wire.Lookup(metadata, "model")
	if !ok {
		return nil, wire.Invalid(wire.FieldError{Field: "model_parameters", Reason: "does not fit: the base names no model in its metadata"})
	}
	parameters, _ := wire.Lookup(model, "parameters")
	change := map[string]json.RawMessage{}
	if p.ModelParameters != nil {
		if err := json.Unmarshal(p.ModelParameters, &change); err != nil {
			return nil, err
		}
	}
	if p.ResponseFormat != nil {
		change["response_format"] = p.ResponseFormat
	}
	parameters, err := merge(parameters, change)
	if err != nil {
		return nil, err
	}
	if model, err = merge(model, map[string]json.RawMessage{"parameters": parameters}); err != nil {
		return nil, err
	}
	return merge(metadata, map[string]json.RawMessage{"model": model})
}

// merge puts members over those of an object; null takes one out.
func merge(object json.RawMessage, over map[string]json.RawMessage) (json.RawMessage, error) {
	o := map[string]json.RawMessage{}
	if object != nil {
		if err := json.Unmarshal(object, &o); err != nil {
			return nil, err
		}
	}
	for name, v := range over {
		if o[name] = v; string(v) == "null" {
			delete(o, name)
		}
	}
	return json.Marshal(o)
}
