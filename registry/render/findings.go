package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/provider"
)

// findingsMax bounds the findings of one blueprint.
const findingsMax = language.FaultsMax

// Findings reports what of a blueprint cannot be rendered. These are texts that a fetch
// would leave as they are, and what the metadata's provider has no place for.
//
// A text with snippets is judged as a whole; what is wrong inside a snippet is reported
// at the reference to it.
func (x Expanded) Findings(metadata json.RawMessage) []wire.Finding {
	o, err := wire.ParseObject(x.Blueprint)
	if err != nil {
		return []wire.Finding{{Line: 1, Column: 1, Message: "is not a JSON object"}}
	}

	p := prompt.Parse(o)
	var findings []wire.Finding
	for b := range p.Blocks {
		if b.Variable == "" && b.Fault != nil && len(findings) < findingsMax {
			findings = append(findings, x.textFinding(b))
		}
	}
	// A prompt whose texts are broken says little about what the provider lacks.
	if len(findings) > 0 {
		return findings
	}

	return providerFindings(p, provider.ParseModel(metadata))
}

// Unresolved turns an error without a place in a text into findings. Such an error comes
// from Expand: a snippet that no longer exists, a cycle.
func Unresolved(err error) (findings []wire.Finding) {
	for _, f := range wire.AsError(err).Fields {
		findings = append(findings, wire.Finding{
			Path:    prompt.Place(f.Field),
			Line:    1,
			Column:  1,
			Message: f.Reason,
		})
	}
	return findings
}

// textFinding reports why the text of a block cannot be rendered.
func (x Expanded) textFinding(b *prompt.Block) wire.Finding {
	f := wire.Finding{Path: textPath(b), Line: 1, Column: 1, Message: b.Fault.Error()}
	var fault *language.Error
	if errors.As(b.Fault, &fault) {
		f.Line, f.Column, f.Message = max(fault.Line, 1), max(fault.Column, 1), fault.Message
	}

	// The fault's place is in the expanded text; people look for it in what they wrote.
	if joined, ok := x.joined[prompt.Place(b.At)]; ok && fault != nil {
		at, snippet := joined.origin(fault.At)
		f.Line, f.Column = language.Position(joined.source, at)
		if snippet != nil {
			f.Message = fmt.Sprintf("refers to the snippet %s, with which the text %s",
				language.Shorten(snippet.String()), fault.Message)
		}
	}

	return f
}

// textPath returns where the text of a block is in the blueprint.
func textPath(b *prompt.Block) string {
	if b.Kind == "text" {
		return prompt.Place(b.At) + ".text"
	}

	return prompt.Place(b.At) + "." + b.Kind + ".url"
}

// providerFindings reports what the provider has no place for, whatever the variables
// are. If variables may bring messages or files, nothing is known before the call.
func providerFindings(p *prompt.Prompt, m provider.Model) []wire.Finding {
	if !provider.Known(m.Provider) {
		return nil
	}
	for b := range p.Blocks {
		if b.Variable != "" || b.Kind != "text" && b.Template != nil {
			return nil
		}
	}
	isPlaceholder := func(m prompt.Message) bool { return m.Role == "placeholder" }
	if slices.ContainsFunc(p.Messages, isPlaceholder) {
		return nil
	}

	_, _, err := provider.Kwargs(m.Provider, m, p, "", nil)
	if err == nil {
		return nil
	}

	return Unresolved(err)
}
