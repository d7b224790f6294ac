package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/fstring"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/provider"
	"promptspool/registry/render/rawjson"
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

// Hints reports what can be rendered, but is hardly meant so. These are names in doubled braces in
// the format f-string, and variables that are given and used nowhere.
func (p *Prepared) Hints(given iter.Seq[string]) []wire.Finding {
	// Mostly none: this is done for each fetch.
	var unused []wire.Finding
	for name := range given {
		if p.used != nil && !p.used[name] {
			message := "has " + language.Shorten(name) + ", which is used nowhere"
			unused = append(unused, findingOf("input_variables", message))
		}
	}
	slices.SortFunc(unused, func(a, b wire.Finding) int { return strings.Compare(a.Message, b.Message) })

	return append(slices.Clip(p.doubled), unused[:min(len(unused), findingsMax)]...)
}

// Hints is Hints of a Prepared, with the variables that the publisher lists.
func (x Expanded) Hints() []wire.Finding {
	p, err := Prepare(x.Blueprint, nil)
	if err != nil {
		return nil
	}

	var listed []string
	for _, e := range rawjson.Elements(rawjson.Member(x.Blueprint, "input_variables")) {
		listed = append(listed, rawjson.Text(e))
	}

	return p.Hints(slices.Values(listed))
}

// prepareHints finds the variables that are used, and the names in doubled braces.
func (p *Prepared) prepareHints() {
	used := map[string]bool{}
	for b := range p.prompt.Blocks {
		if b.Fault != nil {
			// A text that cannot be parsed may use any variable.
			return
		}
		used[b.Variable] = true
		if b.Template != nil {
			for _, name := range b.Template.Variables() {
				used[name] = true
			}
		}

		f, isFString := b.Template.(*fstring.Format)
		if isFString && f.Doubled() != "" && len(p.doubled) < findingsMax {
			p.doubled = append(p.doubled, findingOf(textPath(b), fmt.Sprintf(
				"has {{%[1]s}}, which renders as {%[1]s}; a variable of an f-string is {%[1]s}",
				language.Shorten(f.Doubled()))))
		}
	}
	for _, m := range p.prompt.Messages {
		used[m.Name] = used[m.Name] || m.Role == "placeholder"
	}
	p.used = used
}

// findingOf returns a finding without a place in its text.
func findingOf(path, message string) wire.Finding {
	return wire.Finding{Path: path, Line: 1, Column: 1, Message: message}
}

// Unresolved turns an error without a place in a text into findings. Such an error comes
// from Expand: a snippet that no longer exists, a cycle.
func Unresolved(err error) (findings []wire.Finding) {
	for _, f := range wire.AsError(err).Fields {
		findings = append(findings, findingOf(prompt.Place(f.Field), f.Reason))
	}
	return findings
}

// textFinding reports why the text of a block cannot be rendered.
func (x Expanded) textFinding(b *prompt.Block) wire.Finding {
	f := findingOf(textPath(b), b.Fault.Error())
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
