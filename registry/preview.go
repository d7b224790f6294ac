package registry

import (
	"context"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// Head returns a template without the texts of its versions: who published each when, and
// its labels with their history. An archived template is returned with DeletedAt set.
// wire.CodeNotFound if there is none, or the identity's key may not use it.
func (r *Registry) Head(ctx context.Context, id wire.Identity, ident string) (wire.Template, error) {
	head, err := r.store.Template(ctx, id.Account, ident)
	if wire.IsCode(err, wire.CodeNotFound) || err == nil && !id.Sees(head.Name) {
		return wire.Template{}, noTemplate(id, ident)
	}

	return head, err
}

// Preview answers as a fetch of p would if it were published. It also reports what of p
// cannot be rendered; such texts stay as they are, and the answer's warning leaves out those
// among the findings. It ignores f's selector
// and stores nothing. Errors as Publish and Fetch.
func (r *Registry) Preview(
	ctx context.Context, id wire.Identity, p wire.Publish, f wire.TemplateFetch,
) (wire.RenderedTemplate, []wire.Finding, error) {
	expanded, err := r.check(ctx, id, &p)
	if err != nil {
		return wire.RenderedTemplate{}, nil, err
	}
	findings := expanded.Findings(p.Metadata)
	prepared, err := render.Prepare(expanded.Blueprint, p.Metadata)
	if err != nil {
		return wire.RenderedTemplate{}, findings, err
	}
	// The findings say the same, with lines and columns.
	prepared.Silence()

	raw := wire.RawTemplate{
		Name:             p.Name,
		Blueprint:        expanded.Blueprint,
		Metadata:         p.Metadata,
		Snippets:         expanded.Used,
		ProviderBaseURLs: *r.urls.Load(),
	}
	f.Keep = true
	out, err := renderTemplate(ctx, &raw, prepared, f)

	return out, findings, err
}

// Findings reports what of p could not be rendered if it were published. Errors as
// Publish.
func (r *Registry) Findings(ctx context.Context, id wire.Identity, p wire.Publish) ([]wire.Finding, error) {
	expanded, err := r.check(ctx, id, &p)
	if err != nil {
		return nil, err
	}

	return expanded.Findings(p.Metadata), nil
}

// FindingsOf reports what of the version that s selects cannot be rendered. Errors as
// Fetch.
func (r *Registry) FindingsOf(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) ([]wire.Finding, error) {
	raw, err := r.source(ctx, id, ident, s)
	if err != nil {
		return nil, err
	}

	// Its snippets existed when it was published, but may be gone now.
	expanded, err := r.expand(ctx, id.Account, raw.Name, raw.Blueprint)
	if wire.IsCode(err, wire.CodeInvalid) {
		return render.Unresolved(err), nil
	}
	if err != nil {
		return nil, err
	}

	return expanded.Findings(raw.Metadata), nil
}

// check brings p's blueprint into its normal form, and returns it with its snippets
// filled in. wire.CodeInvalid lists what is wrong.
func (r *Registry) check(
	ctx context.Context, id wire.Identity, p *wire.Publish,
) (render.Expanded, error) {
	// Faults are reported together, under their paths in the request.
	blueprint, faults := render.Check(p.Blueprint)
	for i := range faults {
		faults[i].Field = strings.TrimSuffix("prompt_version.prompt_template."+faults[i].Field, ".")
	}
	for _, f := range render.CheckMetadata(p.Metadata) {
		field := strings.TrimSuffix("prompt_version.metadata."+f.Field, ".")
		faults = append(faults, wire.FieldError{Field: field, Reason: f.Reason})
	}
	// A template that a key may not fetch must not reach it as a part of one that it publishes.
	for _, s := range render.Snippets(blueprint) {
		if !id.Sees(s.Name) {
			faults = append(faults, missingSnippet(s, wire.Template{}))
		}
	}
	if len(faults) > 0 {
		return render.Expanded{}, wire.Invalid(faults...)
	}

	p.Blueprint = blueprint

	return r.expand(ctx, id.Account, p.Name, blueprint)
}
