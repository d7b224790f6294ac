package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"promptspool/api/wire"
)

// findingsMax bounds the findings of one blueprint.
const findingsMax = faultsMax

// Findings reports what of a blueprint cannot be rendered: texts that a fetch would leave as they are, and what the provider that the
// metadata names has no place for. A text with snippets is judged as a whole; what is wrong within a snippet is found at the
// reference to it.
func (x Expanded) Findings(metadata json.RawMessage) []wire.Finding {
	o, err := wire.ParseObject(x.Blueprint)
	if err != nil {
		return []wire.Finding{{Line: 1, Column: 1, Message: "is not a JSON object"}}
	}

	p := parsePrompt(o)
	var findings []wire.Finding
	for b := range p.blocks {
		if b.variable == "" {
			findings = append(findings, x.judge(b)...)
		}
		if len(findings) >= findingsMax {
			return findings[:findingsMax]
		}
	}
	if len(findings) > 0 {
		return findings
	}

	return inexpressibles(p, parseModel(metadata))
}

// Unresolved makes findings of what has no line in a text, such as an error of Expand: a snippet that does not exist
// any more, a circle.
func Unresolved(err error) (findings []wire.Finding) {
	for _, f := range wire.AsError(err).Fields {
		findings = append(findings, wire.Finding{Path: place(f.Field), Line: 1, Column: 1, Message: f.Reason})
	}
	return findings
}

// blocks walks the blocks of all content but that of placeholders, in whose places variables come.
func (p *prompt) blocks(yield func(*block) bool) {
	walk := func(blocks []block) bool {
		for i := range blocks {
			if !yield(&blocks[i]) {
				return false
			}
		}
		return true
	}
	if !walk(p.content) {
		return
	}
	for i := range p.messages {
		if p.messages[i].role != "placeholder" && !walk(p.messages[i].content) {
			return
		}
	}
}

// judge reports what is wrong with the text of a block.
func (x Expanded) judge(b *block) (findings []wire.Finding) {
	var faults []*textError
	if fault := (*textError)(nil); errors.As(b.fault, &fault) {
		faults = append(faults, fault)
	} else if b.fault != nil {
		faults = append(faults, &textError{message: b.fault.Error()})
	}
	if j, ok := b.template.(*Jinja); ok {
		faults = append(faults, j.doubts...)
	}

	for _, fault := range faults {
		f := wire.Finding{Path: textPath(b), Message: fault.message}
		f.Line, f.Column = max(fault.line, 1), max(fault.column, 1)
		if t, ok := x.joined[place(b.at)]; ok {
			at, snippet := t.origin(fault.at)
			f.Line, f.Column = position(t.source, at)
			if snippet != nil {
				f.Message = fmt.Sprintf("refers to the snippet %s, with which the text %s", shorten(snippet.String()), fault.message)
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// textPath is where the text of a block is in the blueprint.
func textPath(b *block) string {
	if b.kind == "text" {
		return place(b.at) + ".text"
	}
	return place(b.at) + "." + b.kind + ".url"
}

// inexpressibles reports what the metadata's provider has no place for, whatever the variables are: where they
// may bring messages or files, nothing can be told before.
func inexpressibles(p *prompt, m model) []wire.Finding {
	if _, known := builders[m.provider]; !known {
		return nil
	}
	for b := range p.blocks {
		if b.variable != "" || b.kind != "text" && b.template != nil {
			return nil
		}
	}
	if slices.ContainsFunc(p.messages, func(m message) bool { return m.role == "placeholder" }) {
		return nil
	}

	_, _, err := kwargsOf(m.provider, m, p, Call{})
	if err == nil {
		return nil
	}
	return Unresolved(err)
}
