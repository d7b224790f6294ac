package registry

import (
	"context"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// Head is a template without its versions' texts: who published each when, its labels and their history. An archived one is
// returned, with DeletedAt set. wire.CodeNotFound if there is none.
func (r *Registry) Head(ctx context.Context, id wire.Identity, ident string) (wire.Template, error) {
	head, err := r.store.Template(ctx, id.Account, ident)
	if wire.IsCode(err, wire.CodeNotFound) {
		return head, noTemplate(ident)
	}
	return head, err
}

// Preview answers as a fetch of p would, were it published. Nothing is kept. f's selector means nothing here. Errors as Publish and Fetch.
func (r *Registry) Preview(ctx context.Context, id wire.Identity, p wire.Publish, f wire.TemplateFetch) (wire.RenderedTemplate, error) {
	blueprint, snippets, err := r.check(ctx, id, &p)
	if err != nil {
		return wire.RenderedTemplate{}, err
	}
	prepared, err := render.Prepare(blueprint, p.Metadata)
	if err != nil {
		return wire.RenderedTemplate{}, err
	}
	raw := wire.RawTemplate{Name: p.Name, Blueprint: blueprint, Metadata: p.Metadata, Snippets: snippets, ProviderBaseURLs: r.urls}
	return renderTemplate(&raw, prepared, f)
}

// check brings what is to be published into its normal form and returns its blueprint with the texts of its snippets in their
// places. wire.CodeInvalid lists what is wrong.
func (r *Registry) check(ctx context.Context, id wire.Identity, p *wire.Publish) ([]byte, []wire.UsedSnippet, error) {
	blueprint, faults := render.Check(p.Blueprint)
	for i := range faults {
		faults[i].Field = strings.TrimSuffix("prompt_version.prompt_template."+faults[i].Field, ".")
	}
	for _, f := range render.CheckMetadata(p.Metadata) {
		faults = append(faults, wire.FieldError{Field: strings.TrimSuffix("prompt_version.metadata."+f.Field, "."), Reason: f.Reason})
	}
	if len(faults) > 0 {
		return nil, nil, wire.Invalid(faults...)
	}
	p.Blueprint = blueprint
	return r.expand(ctx, id.Account, p.Name, blueprint)
}
