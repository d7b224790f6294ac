package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"promptspool/api/wire"
	"promptspool/registry/render/jinja"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/provider"
)

// findingsMax bounds the findings of one blueprint.
const findingsMax = language.FaultsMax

// Findings reports what of a blueprint cannot be rendered: texts that a fetch would leave as they are, and what the provider that the
// metadata names has no place for. A text with snippets is judged as a whole; what is wrong within a snippet is found at the
// reference to it.
func (x Expanded) Findings(metadata json.RawMessage) []wire.Finding {
	o, err := wire.ParseObject(x.Blueprint)
	if err != nil {
		return []wire.Finding{{Line: 1, Column: 1, Message: "is not a JSON object"}}
	}

	p := prompt.Parse(o)
	var findings []wire.Finding
	for b := range p.Blocks {
		if b.Variable == "" {
			findings = append(findings, x.judge(b)...)
		}
		if len(findings) >= findingsMax {
			return findings[:findingsMax]
		}
	}
	if len(findings) > 0 {
		return findings
	}

	return inexpressibles(p, provider.ParseModel(metadata))
}

// Unresolved makes findings of what has no line in a text, such as an error of Expand: a snippet that does not exist
// any more, a circle.
func Unresolved(err error) (findings []wire.Finding) {
	for _, f := range wire.AsError(err).Fields {
		findings = append(findings, wire.Finding{Path: prompt.Place(f.Field), Line: 1, Column: 1, Message: f.Reason})
	}
	return findings
}

// judge reports what is wrong with the text of a block.
func (x Expanded) judge(b *prompt.Block) (findings []wire.Finding) {
	var faults []*language.Error
	if fault := (*language.Error)(nil); errors.As(b.Fault, &fault) {
		faults = append(faults, fault)
	} else if b.Fault != nil {
		faults = append(faults, &language.Error{Message: b.Fault.Error()})
	}
	if j, ok := b.Template.(*jinja.Template); ok {
		faults = append(faults, j.Doubts()...)
	}

	for _, fault := range faults {
		f := wire.Finding{Path: textPath(b), Message: fault.Message}
		f.Line, f.Column = max(fault.Line, 1), max(fault.Column, 1)
		if t, ok := x.joined[prompt.Place(b.At)]; ok {
			at, snippet := t.origin(fault.At)
			f.Line, f.Column = language.Position(t.source, at)
			if snippet != nil {
				f.Message = fmt.Sprintf("refers to the snippet %s, with which the text %s", language.Shorten(snippet.String()), fault.Message)
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// textPath is where the text of a block is in the blueprint.
func textPath(b *prompt.Block) string {
	if b.Kind == "text" {
		return prompt.Place(b.At) + ".text"
	}
	return prompt.Place(b.At) + "." + b.Kind + ".url"
}

// inexpressibles reports what the metadata's provider has no place for, whatever the variables are: where they
// may bring messages or files, nothing can be told before.
func inexpressibles(p *prompt.Prompt, m provider.Model) []wire.Finding {
	if !provider.Known(m.Provider) {
		return nil
	}
	for b := range p.Blocks {
		if b.Variable != "" || b.Kind != "text" && b.Template != nil {
			return nil
		}
	}
	if slices.ContainsFunc(p.Messages, func(m prompt.Message) bool { return m.Role == "placeholder" }) {
		return nil
	}

	_, _, err := provider.Kwargs(m.Provider, m, p, "", nil)
	if err == nil {
		return nil
	}
	return Unresolved(err)
}
