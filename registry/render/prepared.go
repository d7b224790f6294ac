package render

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"promptspool/api/wire"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/provider"
)

// Prepared is one version of a template with its texts parsed, ready to be filled many times. Safe for concurrent use. It keeps the
// bytes that it was made from.
type Prepared struct {
	prompt   *prompt.Prompt
	metadata json.RawMessage // as replies tell it, unless they are for another provider or model
	model    provider.Model
	bytes    int

	plans    atomic.Pointer[[]*plan] // of the calls that came so far; neither the slice nor a plan ever changes
	planning sync.Mutex              // held by who adds one
	planRoom int                     // bytes that there may be of them still; under planning
}

// Prepare takes apart a blueprint that Check made and that Expand expanded, and the metadata of its version (an object, null or
// nil). Its error says that the blueprint is none.
func Prepare(blueprint, metadata json.RawMessage) (*Prepared, error) {
	o, err := wire.ParseObject(blueprint)
	if err != nil {
		return nil, err
	}
	room := 2*len(blueprint) + len(metadata) + 512 // of a call with variables and one without
	// The parsed form is some pointers and paths per block beside the bytes themselves.
	m := provider.ParseModel(metadata)
	return &Prepared{prompt: prompt.Parse(o), metadata: completed(&m, metadata), model: m, planRoom: room, bytes: room + 3*len(blueprint) + 2*len(metadata) + 1024}, nil
}

// Silence drops the warnings about texts that cannot be parsed, for a caller who has the findings. It comes before the first Kwargs.
func (p *Prepared) Silence() {
	for b := range p.prompt.Blocks {
		b.Fault = nil
	}
}

// Provider is the provider that the version's metadata names; "" if none.
func (p *Prepared) Provider() string { return p.model.Provider }

// Bytes is about how much memory it takes, with the blueprint and the metadata that it was made from.
func (p *Prepared) Bytes() int { return p.bytes }

// Call is what a fetch asks for.
type Call struct {
	Provider  string                     // wins over the metadata's; "" for that
	Model     string                     // wins over the metadata's; "" for that
	Variables map[string]json.RawMessage // nil: texts stay as they are, and what is not text is left out
	Overrides map[string]json.RawMessage // win over the metadata's parameters
	Done      <-chan struct{}            // ends the rendering of jinja2 when it is closed; nil: nothing does
	Room      *[]byte                    // where kwargs may be written, see wire.TemplateFetch; nil: nowhere
}

// Kwargs fills in the variables and makes the arguments with which the provider's own client is called. kwargs is nil, without an
// error, if neither the call nor the metadata name a provider. warnings are sentences for the caller. An error is a
// wire.CodeInvalid that says which part of the blueprint or the call the provider cannot express, and what to do; or, if c.Done was
// closed meanwhile, wire.CodeUnavailable.
//
// The members of kwargs have a fixed order: those of the provider's documentation, then parameters as they were published, then
// overrides by name.
//
// Filling: variables that are missing render as empty text, and a warning names them; a placeholder without messages is dropped,
// with a warning; a text that cannot be rendered is left as it is, with a warning.
func (p *Prepared) Kwargs(c Call) (kwargs json.RawMessage, warnings []string, err error) {
	name := c.Provider
	if name == "" {
		name = p.model.Provider
	}
	if name == "" {
		return nil, nil, nil
	}
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
func (p *Prepared) kwargs(providerName string, c Call) (kwargs json.RawMessage, warnings []string, err error) {
	filled, warnings := fill(p.prompt, c.Variables, c.Done)
	if filled == nil {
		return nil, nil, wire.Unavailable(0, "The call ended before the template was rendered.")
	}
	kwargs, more, err := provider.Kwargs(providerName, p.model, filled, c.Model, c.Overrides)
	return kwargs, append(warnings, more...), err
}

// Providers lists the providers that Kwargs knows, by name.
func Providers() []string { return provider.Names() }
