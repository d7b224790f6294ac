package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/registry/render"
)

// List forwards a request for the list of templates. While the server is away, or fails,
// it lists the templates in the cache, if those can answer q.
func (c *Cache) List(
	ctx context.Context, id wire.Identity, q wire.TemplateListQuery,
) (wire.TemplateList, error) {
	// Wait only as long as a fetch would if there is something to fall back to.
	asking := ctx
	if c.hasAny(id.Account) {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, askTimeout)
		defer cancel()
	}

	// An answer of the server always wins, even a refusal.
	list, err := c.config.Upstream.List(asking, id, q)
	if err == nil || isVerdict(err) {
		return list, err
	}

	cached, ok, noRoom := c.listCached(ctx, id, q)
	switch {
	case noRoom != nil:
		return wire.TemplateList{}, noRoom
	case ok:
		return cached, nil
	default:
		return wire.TemplateList{}, err
	}
}

// hasAny reports whether the cache holds anything of an account.
func (c *Cache) hasAny(account string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	for k := range c.entries.byKey {
		if k.account == account {
			return true
		}
	}
	return false
}

// listCached lists the templates in the cache that an identity may use, each with its
// newest cached version.
//
// ok is false if there is none, or if q asks for what copies do not know: archived
// templates, authors, times and external ids of templates, and which are snippets. An
// error means that memory for the page was refused.
func (c *Cache) listCached(
	ctx context.Context, id wire.Identity, q wire.TemplateListQuery,
) (_ wire.TemplateList, ok bool, _ error) {
	byTime := !q.CreatedAfter.IsZero() || !q.CreatedBefore.IsZero() ||
		!q.UpdatedAfter.IsZero() || !q.UpdatedBefore.IsZero() ||
		q.SortBy == "created_at" || q.SortBy == "updated_at"
	byUse := q.IsSnippet != nil || q.ExternalID != ""
	// Guessing would be worse than an error: a copy knows nothing of these.
	if byTime || byUse || q.Author != "" || q.Status == "deleted" {
		return wire.TemplateList{}, false, nil
	}

	newest, lastRead, age := c.newest(id)
	if len(newest) == 0 {
		return wire.TemplateList{}, false, nil
	}
	// Admitted before anything is unpacked. The largest page is assumed, because which
	// templates match is only known afterwards.
	q = bounded(q)
	if err := admission.AdmitRoom(ctx, rawCopies*largestPage(newest, q.PerPage)); err != nil {
		return wire.TemplateList{}, false, err
	}

	// There may be thousands of copies, so each is unpacked, matched and let go. Those of
	// the page are unpacked again below.
	var heads []wire.Template
	for name, e := range newest {
		raw, err := c.raw(e)
		if err != nil {
			// A damaged copy is left out; fetching it says what is wrong.
			continue
		}
		head := wire.Template{
			ID:       raw.ID,
			Name:     name,
			Tags:     raw.Tags,
			Labels:   lastRead[name].meta.labels,
			Versions: make([]wire.Stamp, raw.Version),

			CreatedAt: raw.CreatedAt,
			UpdatedAt: raw.CreatedAt,
		}
		if q.Match(&head) {
			heads = append(heads, head)
		}
	}

	page, total := q.PageOf(heads)
	list := wire.TemplateList{
		Success: true,
		Items:   []wire.TemplateListItem{},
		Paging:  wire.NewPaging(q.Page, q.PerPage, total),
		Cache:   "stale",
		Age:     age,
	}
	for _, head := range page {
		if raw, err := c.raw(newest[head.Name]); err == nil {
			list.Items = append(list.Items, listItem(head, wire.Version{
				Number:        raw.Version,
				Blueprint:     raw.Blueprint,
				Metadata:      raw.Metadata,
				CommitMessage: wire.OrZero(raw.CommitMessage),
			}, false))
		}
	}

	return list, true, nil
}

// largestPage returns how many bytes a page with perPage of these templates may have.
func largestPage(newest map[string]*entry, perPage int) (bytes int) {
	var sizes []int
	for _, e := range newest {
		sizes = append(sizes, e.textBytes)
	}
	slices.Sort(sizes)
	for _, size := range sizes[max(0, len(sizes)-perPage):] {
		bytes += size
	}

	return bytes
}

// newest picks two copies of each cached template that an identity may use: the one with the newest
// version, and the one that was read last, which knows the labels. age says for how long
// the least recently confirmed of the latter has not been confirmed.
func (c *Cache) newest(id wire.Identity) (newest, lastRead map[string]*entry, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	newest, lastRead = make(map[string]*entry), make(map[string]*entry)
	// One template may have a copy for each selector: latest, labels, numbers.
	for k, e := range c.entries.byKey {
		name := e.meta.name
		if k.account != id.Account || !id.Sees(name) {
			continue
		}
		if other := newest[name]; other == nil || isNewer(&e.meta, &other.meta) {
			newest[name] = e
		}
		if other := lastRead[name]; other == nil || e.meta.revision > other.meta.revision {
			lastRead[name] = e
		}
	}

	// The list is as old as its oldest part.
	for _, e := range lastRead {
		age = max(age, time.Since(c.confirmedLocked(e)))
	}

	return newest, lastRead, age
}

// isNewer orders copies by version, and those of one version by when they were read.
func isNewer(a, b *entryMeta) bool {
	return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.revision, b.revision)) > 0
}

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
