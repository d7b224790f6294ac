package render

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"promptspool/api/wire"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/provider"
)

// Prepared is one version of a template with its texts parsed, ready to be filled in many
// times. It is safe for concurrent use, and keeps the bytes that it was made from.
type Prepared struct {
	prompt   *prompt.Prompt
	metadata json.RawMessage // as answers show it, unless they are for another provider or model
	model    provider.Model
	bytes    int

	// See Hints.
	used    map[string]bool // variables; nil if not all are known
	doubled []wire.Finding

	plans     atomic.Pointer[[]*plan] // of earlier calls; neither the slice nor a plan ever changes
	planning  sync.Mutex              // held while a plan is added
	planSpace int                     // bytes that plans may still take; guarded by planning
}

// Prepare parses a blueprint, checked and expanded, and the metadata of its version. The
// metadata is an object, null or nil. An error means that the blueprint is not an object.
func Prepare(blueprint, metadata json.RawMessage) (*Prepared, error) {
	o, err := wire.ParseObject(blueprint)
	if err != nil {
		return nil, err
	}

	// Space for the plans of a call with variables and of one without. Besides the bytes
	// themselves, the parsed form takes some pointers and paths per block.
	space := 2*len(blueprint) + len(metadata) + 512
	model := provider.ParseModel(metadata)

	p := &Prepared{
		prompt:    prompt.Parse(o),
		metadata:  completed(&model, metadata),
		model:     model,
		planSpace: space,
		bytes:     space + 3*len(blueprint) + 2*len(metadata) + 1024,
	}
	p.prepareHints()
	p.bytes += 64 * len(p.used)

	return p, nil
}

// Silence drops the warnings about texts that cannot be parsed, for a caller that has the
// findings. Call it before the first Kwargs.
func (p *Prepared) Silence() {
	for b := range p.prompt.Blocks {
		b.Fault = nil
	}
	p.used = nil
}

// Provider returns the provider that the version's metadata names; "" if none.
func (p *Prepared) Provider() string { return p.model.Provider }

// Bytes estimates how much memory p takes, with the blueprint and the metadata that it
// was made from.
func (p *Prepared) Bytes() int { return p.bytes }

// Call is what a fetch asks for.
type Call struct {
	Provider  string                     // wins over the metadata's; "" means that one
	Model     string                     // wins over the metadata's; "" means that one
	Overrides map[string]json.RawMessage // win over the metadata's parameters

	// Variables fill in the texts. nil leaves texts as they are, and drops what is not
	// text.
	Variables map[string]json.RawMessage

	// Keep leaves texts that cannot be rendered as they are, with a warning.
	Keep bool

	// Context ends the rendering of jinja2 when it ends. It may be nil. Only a rendering that
	// takes long looks at it: a call's context costs more than most renderings.
	Context context.Context

	// Buffer is memory that kwargs may be written to, see wire.TemplateFetch. It may be
	// nil.
	Buffer *[]byte
}

// Kwargs fills in the variables and makes the arguments for the provider's own client.
// kwargs is nil, without an error, if neither the call nor the metadata names a provider.
//
// The members of kwargs have a fixed order: those of the provider's documentation, then
// parameters as they were published, then overrides by name.
//
// warnings are sentences for the caller. Missing variables render as empty text, and a
// placeholder without messages is dropped, each with a warning.
//
// An error wire.CodeInvalid names the part of the blueprint or the call that the provider
// cannot express, and what to do, or with the cause ErrVariables a variable, or a text that
// cannot be rendered.
// wire.CodeUnavailable means that c.Context ended.
func (p *Prepared) Kwargs(c Call) (kwargs json.RawMessage, warnings []string, err error) {
	name := c.Provider
	if name == "" {
		name = p.model.Provider
	}
	if name == "" {
		return nil, nil, nil
	}

	// Plans have no place for overrides, which differ from call to call.
	if len(c.Overrides) == 0 {
		if pl := p.plan(planKey{name, c.Model, c.Variables != nil}); pl != nil {
			if kwargs, ok := pl.fill(c); ok {
				return kwargs, pl.warnings, nil
			}
		}
	}

	return p.kwargs(name, c)
}

// kwargs is Kwargs without a plan.
func (p *Prepared) kwargs(providerName string, c Call) (json.RawMessage, []string, error) {
	filled, warnings, err := fill(c.Context, p.prompt, c.Variables, c.Keep)
	if err != nil {
		return nil, nil, err
	}

	kwargs, more, err := provider.Kwargs(providerName, p.model, filled, c.Model, c.Overrides)

	return kwargs, append(warnings, more...), err
}

// Providers lists the providers that Kwargs knows, by name.
func Providers() []string { return provider.Names() }
