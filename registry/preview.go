package registry

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// List forwards a request for the list of templates.
func (c *Cache) List(
	ctx context.Context, id wire.Identity, q wire.TemplateListQuery,
) (wire.TemplateList, error) {
	return c.config.Upstream.List(ctx, id, q)
}

// A Cache forwards to the server what changes templates. After a change the account's copies
// count as outdated, whatever the feed has reported by then.

// Publish forwards a publish. Copies of that template count as outdated from then on.
func (c *Cache) Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error) {
	out, err := c.config.Upstream.Publish(ctx, id, p)
	return out, c.edited(id, err, p.Name)
}

// Patch forwards a patch.
func (c *Cache) Patch(
	ctx context.Context, id wire.Identity, ident string, p wire.TemplatePatch,
) (wire.Published, error) {
	out, err := c.config.Upstream.Patch(ctx, id, ident, p)
	return out, c.edited(id, err, ident)
}

// CreateLabel forwards the creation of a label.
func (c *Cache) CreateLabel(
	ctx context.Context, id wire.Identity, ident string, w wire.LabelWrite, by string,
) (wire.PlacedLabel, error) {
	out, err := c.config.Upstream.CreateLabel(ctx, id, ident, w, by)
	return out, c.edited(id, err, ident)
}

// MoveLabel forwards the move of a label.
func (c *Cache) MoveLabel(
	ctx context.Context, id wire.Identity, label int64, version int, by string,
) (wire.PlacedLabel, error) {
	out, err := c.config.Upstream.MoveLabel(ctx, id, label, version, by)
	return out, c.edited(id, err, "")
}

// DeleteLabel forwards the deletion of a label.
func (c *Cache) DeleteLabel(ctx context.Context, id wire.Identity, label int64, by string) error {
	err := c.config.Upstream.DeleteLabel(ctx, id, label, by)
	return c.edited(id, err, "")
}

// Archive forwards the archiving of a template.
func (c *Cache) Archive(ctx context.Context, id wire.Identity, ident, by string) error {
	err := c.config.Upstream.Archive(ctx, id, ident, by)
	return c.edited(id, err, ident)
}

// Restore forwards the restoring of a template.
func (c *Cache) Restore(ctx context.Context, id wire.Identity, ident, by string) error {
	err := c.config.Upstream.Restore(ctx, id, ident, by)
	return c.edited(id, err, ident)
}

// edited marks the copies of a template as outdated or, if ident is "", all copies of the
// account, unless the server rejected the change. It returns the error for the caller.
func (c *Cache) edited(id wire.Identity, err error, ident string) error {
	// A server that did not answer may still have made the change.
	if err != nil && isVerdict(err) {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.bumpEpochLocked(id.Account)
	if ident != "" {
		c.invalidateLocked(id.Account, []string{ident}, everyRevision)
	} else {
		c.markLocked(id.Account, func(e *entry) bool { return !e.key.isPinned() })
	}

	return err
}

const (
	preloadRetry    = time.Second // between attempts while the server is away
	preloadLabel    = "label:"    // preloads every template that has the label
	preloadOfName   = "@label:"   // preloads one template by a label
	preloadListPage = 100
)

// Preload fetches templates before an app asks for them, so that they are there if the
// server goes away.
//
// Each spec is NAME (its latest version), NAME@label:LABEL, or label:LABEL (every
// template with that label, which needs a key of scope full). While the server is away,
// Preload retries until ctx ends. Its error names what the server does not have; the rest
// is fetched nevertheless.
func (c *Cache) Preload(ctx context.Context, id wire.Identity, specs []string) error {
	var missing []string
	for _, spec := range specs {
		err := c.preloadRetrying(ctx, id, spec)
		// One missing template must not keep the others from being loaded.
		switch {
		case err == nil:
		case isVerdict(err):
			missing = append(missing, fmt.Sprintf("%s (%s)", spec, wire.AsError(err).Message))
		default:
			return fmt.Errorf("not all templates were preloaded: %w", err)
		}
	}

	if missing != nil {
		return wire.Errorf(wire.CodeNotFound,
			"Some templates could not be preloaded: %s.", strings.Join(missing, "; "))
	}

	return nil
}

// preloadRetrying retries until the server has answered or ctx ends.
func (c *Cache) preloadRetrying(ctx context.Context, id wire.Identity, spec string) error {
	for {
		err := c.preload(ctx, id, spec)
		if err == nil || isVerdict(err) {
			return err
		}
		if sleep(ctx, preloadRetry); ctx.Err() != nil {
			return err
		}
	}
}

func (c *Cache) preload(ctx context.Context, id wire.Identity, spec string) error {
	if label, ok := strings.CutPrefix(spec, preloadLabel); ok {
		return c.preloadLabelled(ctx, id, label)
	}

	name, label, _ := strings.Cut(spec, preloadOfName)
	// Raw leaves the copy on disk as Fetch does, and renders nothing.
	_, err := c.Raw(ctx, id, name, wire.Selector{Label: label})

	return err
}

func (c *Cache) preloadLabelled(ctx context.Context, id wire.Identity, label string) error {
	for page := 1; ; page++ {
		list, err := c.config.Upstream.List(ctx, id, wire.TemplateListQuery{
			Page:    page,
			PerPage: preloadListPage,
			Label:   label,
		})
		if err != nil {
			return err
		}

		for _, t := range list.Items {
			_, err := c.Raw(ctx, id, t.Name, wire.Selector{Label: label})
			// Deleted since the list was made.
			if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
				return err
			}
		}

		// Beyond entriesMax each template would push out one that was just loaded.
		if !list.HasNext || page*preloadListPage >= entriesMax {
			return nil
		}
	}
}
