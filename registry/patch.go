package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Patch publishes the version that p makes of its base: what p does not name stays. A
// patch that changes nothing creates no version, unless its base is not the latest.
//
// wire.CodeInvalid names what does not apply to the base. Other errors as Publish.
func (r *Registry) Patch(
	ctx context.Context, id wire.Identity, ident string, p wire.TemplatePatch,
) (wire.Published, error) {
	base, err := r.source(ctx, id, ident, p.Selector)
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
		Name:          base.Name,
		Blueprint:     blueprint,
		Metadata:      metadata,
		CommitMessage: p.CommitMessage,
		Labels:        p.Labels,
		Author:        p.Author,
	})
}

// patchBlueprint applies a patch to a blueprint. The order of members may change; it
// means nothing.
func patchBlueprint(blueprint json.RawMessage, p wire.TemplatePatch) (json.RawMessage, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(blueprint, &o); err != nil {
		return nil, err
	}

	// A base has one of two types, each with its own members.
	base, isChat := "a completion", false
	if string(o["type"]) == `"chat"` {
		base, isChat = "a chat", true
	}
	for _, m := range []struct {
		name   string
		change json.RawMessage
		ofChat bool // a member of chats; otherwise of completions
		whole  bool // replaced as a whole
	}{
		{"messages", p.Messages, true, false},
		{"tools", p.Tools, true, false},
		{"functions", p.Functions, true, false},
		{"function_call", p.FunctionCall, true, true},
		{"tool_choice", p.ToolChoice, true, true},
		{"content", p.Content, false, false},
	} {
		switch {
		case m.change == nil:
		case m.ofChat != isChat:
			return nil, wire.Invalid(wire.FieldError{
				Field:  m.name,
				Reason: "does not apply: the base is " + base,
			})
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

	// Publishing computes them again.
	delete(o, "input_variables")

	return json.Marshal(o)
}

// patchElements replaces elements of an array by their index. An index one past the end
// appends.
func patchElements(name string, array, patch json.RawMessage) (json.RawMessage, error) {
	var elements []json.RawMessage
	if array != nil {
		if err := json.Unmarshal(array, &elements); err != nil {
			return nil, err
		}
	}
	var byIndex map[string]json.RawMessage
	if err := json.Unmarshal(patch, &byIndex); err != nil {
		return nil, err
	}
	notIndex := func(text string) error {
		count := english.Plural(len(elements), "element", "")
		return wire.Invalid(wire.FieldError{
			Field:  name + "." + text,
			Reason: fmt.Sprintf("is not an index: the list has %s, counted from 0", count),
		})
	}

	// From the lowest index up: each may append the element that the next one follows. A
	// patch may have millions of them, so they are not looked for again and again.
	type change struct {
		index int
		text  string // the index as written
	}
	order := make([]change, 0, len(byIndex))
	for text := range byIndex {
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 {
			return nil, notIndex(text)
		}
		order = append(order, change{i, text})
	}
	sort.Slice(order, func(i, j int) bool {
		a, b := &order[i], &order[j]
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.text, b.text)) < 0
	})

	for _, c := range order {
		switch {
		case c.index > len(elements):
			return nil, notIndex(c.text)
		case c.index == len(elements):
			elements = append(elements, byIndex[c.text])
		default:
			elements[c.index] = byIndex[c.text]
		}
	}

	return json.Marshal(elements)
}

// patchMetadata merges a patch's parameters into those of the model.
func patchMetadata(metadata json.RawMessage, p wire.TemplatePatch) (json.RawMessage, error) {
	if p.ModelParameters == nil && p.ResponseFormat == nil {
		return metadata, nil
	}

	model, ok := jsonscan.Lookup(metadata, "model")
	if !ok {
		return nil, wire.Invalid(wire.FieldError{
			Field:  "model_parameters",
			Reason: "does not apply: the base names no model in its metadata",
		})
	}

	change := map[string]json.RawMessage{}
	if p.ModelParameters != nil {
		if err := json.Unmarshal(p.ModelParameters, &change); err != nil {
			return nil, err
		}
	}
	if p.ResponseFormat != nil {
		change["response_format"] = p.ResponseFormat
	}

	// From the inside out, so that everything that the patch does not name stays.
	parameters, _ := jsonscan.Lookup(model, "parameters")
	parameters, err := merge(parameters, change)
	if err != nil {
		return nil, err
	}
	model, err = merge(model, map[string]json.RawMessage{"parameters": parameters})
	if err != nil {
		return nil, err
	}

	return merge(metadata, map[string]json.RawMessage{"model": model})
}

// merge sets members of an object; null removes one.
func merge(object json.RawMessage, members map[string]json.RawMessage) (json.RawMessage, error) {
	o := map[string]json.RawMessage{}
	if object != nil {
		if err := json.Unmarshal(object, &o); err != nil {
			return nil, err
		}
	}

	for name, v := range members {
		// A patch takes a member away with null, as RFC 7396 does.
		if string(v) == "null" {
			delete(o, name)
		} else {
			o[name] = v
		}
	}

	return json.Marshal(o)
}
