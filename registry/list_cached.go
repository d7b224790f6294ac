package registry

import (
	"cmp"
	"context"
	"slices"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
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
		return wire.TemplateList{}, orUnavailable(err)
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
		age = max(age, c.config.Now().Sub(c.confirmedLocked(e)))
	}

	return newest, lastRead, age
}

// isNewer orders copies by version, and those of one version by when they were read.
func isNewer(a, b *entryMeta) bool {
	return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.revision, b.revision)) > 0
}
