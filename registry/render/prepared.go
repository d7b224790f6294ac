package render

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/provider"
	"promptspool/registry/render/rawjson"
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
}

// Prepare parses a blueprint, checked and expanded, and the metadata of its version. The
// metadata is an object, null or nil. An error means that the blueprint is not an object.
func Prepare(blueprint, metadata json.RawMessage) (*Prepared, error) {
	o, err := wire.ParseObject(blueprint)
	if err != nil {
		return nil, err
	}

	// Besides the bytes themselves, the parsed form takes some pointers and paths per block.
	model := provider.ParseModel(metadata)
	p := &Prepared{
		prompt:   prompt.Parse(o),
		metadata: completed(&model, metadata),
		model:    model,
		bytes:    3*len(blueprint) + 2*len(metadata) + 1024,
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
	name := cmp.Or(c.Provider, p.model.Provider)
	if name == "" {
		return nil, nil, nil
	}

	filled, warnings, err := fill(c.Context, p.prompt, c.Variables, c.Keep)
	if err != nil {
		return nil, nil, err
	}

	kwargs, more, err := provider.Kwargs(name, p.model, filled, c.Model, c.Overrides)

	return kwargs, append(warnings, more...), err
}

// Providers lists the providers that Kwargs knows, by name.
func Providers() []string { return provider.Names() }

// filler turns a prompt with variables into one without.
type filler struct {
	language.Rendering
	text     []byte // the text that is being written; its memory is used again for the next one
	warnings []string
	given    checker // of what the variables hold, and of the texts
	keep     bool    // see Call.Keep
}

// fill puts variables into the texts and into the image and media urls of a prompt. A
// placeholder is replaced by the messages of its variable, and an image block by the
// images of its variable. Filled-in values are data: they are not searched for variables
// again. If vars is nil, the prompt stays as it is.
//
// Warnings, each a sentence, say what is not as the publisher meant it. The error is
// ErrVariables or, if ctx, which may be nil, ended before the end, wire.CodeUnavailable.
func fill(
	ctx context.Context, p *prompt.Prompt, vars map[string]json.RawMessage, keep bool,
) (*prompt.Prompt, []string, error) {
	if vars == nil {
		return p, nil, nil
	}

	f := filler{Rendering: language.NewRendering(vars), keep: keep}
	f.Context = ctx

	// A copy: the prompt is shared by all calls of its template.
	out := *p
	out.Content = f.blocks(p.Content)
	if p.Chat {
		out.Messages = make([]prompt.Message, 0, len(p.Messages))
		for i := range p.Messages {
			m := p.Messages[i]
			if m.Role == "placeholder" {
				out.Messages = append(out.Messages, f.placeholder(m.At, m.Name)...)
				continue
			}
			m.Content = f.blocks(m.Content)
			out.Messages = append(out.Messages, m)
		}
	}
	switch {
	case f.Ended:
		return nil, nil, wire.Unavailable(0, "The request ended before the template was rendered.")
	case len(f.given.faults) > 0:
		e := wire.Invalid(f.given.faults...)
		e.Cause = ErrVariables
		return nil, nil, e
	}

	return &out, f.allWarnings(), nil
}

// ErrVariables is the cause of an error about variables that cannot be filled in. They are of the
// wrong kind, such as a text for a placeholder, or their text cannot be rendered.
var ErrVariables = errors.New("variables cannot be filled in")

// unrendered notes why a text cannot be rendered.
func (f *filler) unrendered(b *prompt.Block, err error) {
	if f.keep {
		f.warn("%s was left as it is: it %v.", prompt.Place(b.At), err)
		return
	}
	f.given.fault(prompt.Place(b.At), "cannot be rendered: it %v", err)
}

func (f *filler) warn(format string, args ...any) {
	if len(f.warnings) < language.FaultsMax {
		f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
	}
}

// allWarnings returns every warning, the missing variables first.
func (f *filler) allWarnings() []string {
	if len(f.Missing) == 0 {
		return f.warnings
	}
	names := make([]string, len(f.Missing))
	for i, name := range f.Missing {
		names[i] = language.Shorten(name)
	}
	missing := "These variables were not given and are empty: " + strings.Join(names, ", ") + "."

	return append([]string{missing}, f.warnings...)
}

// blocks returns the blocks of a message, filled in. If there is nothing to fill in, it
// returns list itself.
func (f *filler) blocks(list []prompt.Block) []prompt.Block {
	var out []prompt.Block
	for i := range list {
		b := &list[i]
		if b.Template == nil && b.Fault == nil && b.Variable == "" {
			if out != nil {
				out = append(out, *b)
			}
			continue
		}

		// The first one that changes.
		if out == nil {
			out = append(make([]prompt.Block, 0, len(list)), list[:i]...)
		}
		switch {
		case b.Variable != "":
			out = append(out, f.images(b)...)
		case b.Fault != nil:
			f.unrendered(b, b.Fault)
			out = append(out, *b)
		default:
			out = append(out, f.block(b))
		}
	}

	if out == nil {
		return list
	}

	return out
}

// block renders the text of one block.
func (f *filler) block(b *prompt.Block) prompt.Block {
	filled := *b
	missing := len(f.Missing)
	// Space for a quarter more than the text, so that short values need no second
	// allocation.
	f.text = slices.Grow(f.text[:0], len(b.Text)+len(b.Text)/4+256)
	text, err := b.Template.AppendTo(f.text, &f.Rendering)
	if err != nil {
		// The text stays, so nothing in it is empty.
		f.Missing = f.Missing[:missing]
		f.unrendered(b, err)
		return filled
	}

	f.text = text
	filled.Text, filled.Template = string(text), nil

	return filled
}

// placeholder returns the messages that a variable holds.
func (f *filler) placeholder(at, name string) []prompt.Message {
	dropped := func(format string, args ...any) []prompt.Message {
		f.warn("%s, the placeholder %s, was dropped: %s.",
			prompt.Place(at), language.Shorten(name), fmt.Sprintf(format, args...))
		return nil
	}

	value, ok := f.Variables[name]
	if !ok || rawjson.IsNull(value) {
		return dropped("no messages were given for it")
	}
	// Variables are not rendered here, but they count as output.
	if f.Output -= len(value); f.Output < 0 {
		return dropped("the outcome %v", language.ErrOutput)
	}

	// Messages from a caller are checked like published ones: providers rely on their
	// form.
	c := &checker{isData: true}
	list := c.list(name, value, messagesMax)
	messages := make([]prompt.Message, 0, len(list))
	for i, raw := range list {
		normal, _ := c.message(fmt.Sprintf("%s[%d]", name, i), raw)
		if len(c.faults) > 0 {
			break
		}
		at := fmt.Sprintf("input_variables.%s[%d]", language.Shorten(name), i)
		messages = append(messages, prompt.ParseMessage(at, rawjson.Object(normal), true))
	}
	if len(c.faults) > 0 {
		first := c.faults[0]
		f.given.fault("input_variables."+first.Field,
			"%s; %s is a placeholder for messages", first.Reason, prompt.Place(at))
	}

	return messages
}

// images returns the blocks for a variable that holds images: a url, or a list of urls or
// of objects with one. A media_variable takes files of other types as well.
func (f *filler) images(b *prompt.Block) []prompt.Block {
	value, ok := f.Variables[b.Variable]
	if !ok || rawjson.IsNull(value) {
		f.Miss(b.Variable)
		return nil
	}
	// Images are not rendered either, but count as output.
	if f.Output -= len(value); f.Output < 0 {
		f.warn("%s was dropped: the outcome %v.", prompt.Place(b.At), language.ErrOutput)
		return nil
	}

	name := language.Shorten(b.Variable)
	list := []json.RawMessage{value}
	if value[0] == '[' {
		list = rawjson.Elements(value)
	}
	if len(list) > blocksMax {
		f.given.fault("input_variables."+b.Variable, "has more than %d images", blocksMax)
		return nil
	}

	blocks := make([]prompt.Block, 0, len(list))
	for i, e := range list {
		image, ok := imageOf(b, e)
		if !ok {
			f.given.fault("input_variables."+b.Variable,
				"must be the url of an image, or a list of them, for %s", prompt.Place(b.At))
			return nil
		}
		image.At = fmt.Sprintf("input_variables.%s[%d]", name, i)
		blocks = append(blocks, image)
	}

	return blocks
}

// imageOf makes a block of one value of an image_variable or media_variable.
func imageOf(b *prompt.Block, value json.RawMessage) (prompt.Block, bool) {
	out := prompt.Block{Kind: "image_url", Text: rawjson.Text(value)}
	if b.Kind == "media_variable" {
		out.Kind = "media"
	}

	// A url takes over what the block says beside its own url, such as detail.
	if value[0] != '{' {
		if raw, ok := b.Raw.Get(out.Kind); ok {
			out.Raw = append(out.Raw, rawjson.MemberOf(out.Kind, raw))
		}
		return out, out.Text != ""
	}
	o := rawjson.Object(value)
	for _, inner := range []string{"image_url", "media"} {
		if v, ok := o.Get(inner); ok {
			out.Kind, value = inner, v
			break
		}
	}
	// All of these are taken: {"image_url": "..."},
	// {"image_url": {"url": "..."}}, {"url": "..."}.
	out.Text = rawjson.Text(value)
	out.Text = cmp.Or(out.Text, rawjson.Text(rawjson.Member(value, "url")))
	if value[0] == '{' {
		out.Raw = append(out.Raw, rawjson.MemberOf(out.Kind, value))
	}

	return out, out.Text != ""
}

// completed returns the version's metadata with its api_type as clients expect it.
func completed(m *provider.Model, metadata json.RawMessage) json.RawMessage {
	apiType := provider.NormalAPI(m.Provider, m.APIType)
	if apiType == m.APIType {
		return metadata
	}

	model := rawjson.Object(rawjson.Member(metadata, "model"))

	return withModel(metadata, rawjson.Set(model, "api_type", rawjson.Quote(apiType)))
}

// withModel returns metadata with another model.
func withModel(metadata json.RawMessage, m wire.Object) json.RawMessage {
	return rawjson.Encode(rawjson.Set(rawjson.Object(metadata), "model", rawjson.Encode(m)))
}

// Metadata returns the version's metadata as the answer to a call shows it.
// metadata.model is what Kwargs are made for; "" for the provider or the model means the
// published one. If that leaves no model, its name is null.
func (p *Prepared) Metadata(providerName, modelName string) json.RawMessage {
	providerName = cmp.Or(providerName, p.model.Provider)
	if providerName == p.model.Provider && (modelName == "" || modelName == p.model.Name) {
		return p.metadata
	}

	// The same decision as for llm_kwargs, so that both name one model.
	settled := provider.Settle(providerName, p.prompt, p.model, modelName)
	m := wire.Object{
		rawjson.MemberOf("provider", rawjson.Quote(providerName)),
		rawjson.MemberOf("name", json.RawMessage("null")),
	}
	if settled.Name != "" {
		m = rawjson.Set(m, "name", rawjson.Quote(settled.Name))
	}
	if apiType := provider.NormalAPI(providerName, settled.APIType); apiType != "" {
		m = append(m, rawjson.MemberOf("api_type", rawjson.Quote(apiType)))
	}

	m = append(m, rawjson.MemberOf("parameters", rawjson.Encode(settled.Parameters)))

	return withModel(p.metadata, m)
}

// CheckMetadata validates the metadata of a version before it is published. Absent and
// null are valid.
//
// It rejects parameters that would send the app's client elsewhere, or give it
// credentials: a publisher of templates must not be able to redirect the calls of every
// app that fetches it.
func CheckMetadata(metadata json.RawMessage) []wire.FieldError {
	if rawjson.IsNull(metadata) {
		return nil
	}

	c := &checker{}
	if top, ok := c.object("", metadata); ok {
		if raw, ok := top.Get("model"); ok {
			c.model(raw)
		}
	}

	return c.faults
}

func (c *checker) model(raw json.RawMessage) {
	m, ok := c.object("model", raw)
	if !ok {
		return
	}

	for _, name := range []string{"provider", "name", "api_type"} {
		c.text("model."+name, m, name, false)
	}
	if raw, ok := m.Get("parameters"); ok {
		parameters, _ := c.object("model.parameters", raw)
		for _, p := range parameters {
			if at := provider.Redirecting(p.Name, p.Value); at != "" {
				c.fault("model.parameters."+at, provider.RedirectsClient)
			}
		}
	}
}
