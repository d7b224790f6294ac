package registry

import (
	"cmp"
	"context"
	"slices"
	"time"

	"promptspool/api/room"
	"promptspool/api/wire"
)

// List passes a question for the list on. While the server is away, or fails, it tells the templates that the cache holds, as far as q
// can be answered from them; see held.
func (c *Cache) List(ctx context.Context, id wire.Identity, q wire.TemplateListQuery) (wire.TemplateList, error) {
	asking := ctx
	if c.holds(id.Account) {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, askTimeout)
		defer cancel()
	}

	list, err := c.upstream.List(asking, id, q)
	if err == nil || definite(err) {
		return list, err
	}
	held, ok, noRoom := c.held(ctx, id.Account, q)
	switch {
	case noRoom != nil:
		return wire.TemplateList{}, noRoom
	case ok:
		return held, nil
	default:
		return wire.TemplateList{}, orAway(err)
	}
}

// holds reports whether anything of an account is held.
func (c *Cache) holds(account string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	for k := range c.entries.byKey {
		if k.account == account {
			return true
		}
	}

	return false
}

// held lists the templates of an account that are held, each with its newest version that is. ok is false if there is none, or if q asks
// for what copies do not tell: archived templates, authors, and times of templates. The error says that there is no room for the page.
func (c *Cache) held(ctx context.Context, account string, q wire.TemplateListQuery) (_ wire.TemplateList, ok bool, _ error) {
	timed := !q.CreatedAfter.IsZero() || !q.CreatedBefore.IsZero() || !q.UpdatedAfter.IsZero() || !q.UpdatedBefore.IsZero()
	if timed || q.Author != "" || q.Status == "deleted" || q.SortBy == "created_at" || q.SortBy == "updated_at" {
		return wire.TemplateList{}, false, nil
	}

	newest, labels, age := c.newest(account)
	if len(newest) == 0 {
		return wire.TemplateList{}, false, nil
	}

	q = bounded(q)
	if err := room.Admit(ctx, rawCopies*largestPage(newest, q.PerPage)); err != nil {
		return wire.TemplateList{}, false, err
	}

	// Packed copies are unpacked one by one, those of the page twice: there may be thousands.
	var heads []wire.Template
	for name, e := range newest {
		raw, err := c.raw(e)
		if err != nil {
			continue
		}
		head := wire.Template{ID: raw.ID, Name: name, Tags: raw.Tags, Labels: labels[name].about.labels, Versions: make([]wire.Stamp, raw.Version)}
		if q.Match(&head) {
			heads = append(heads, head)
		}
	}

	page, total := q.PageOf(heads)
	list := wire.TemplateList{Success: true, Items: []wire.TemplateListItem{}, Paging: wire.NewPaging(q.Page, q.PerPage, total), Cache: "stale", Age: age}
	for _, head := range page {
		raw, err := c.raw(newest[head.Name])
		if err != nil {
			continue
		}
		list.Items = append(list.Items, wire.TemplateListItem{
			ID: raw.ID, Name: raw.Name, Version: raw.Version, Tags: nonNil(raw.Tags), Labels: nonNil(head.Labels), Blueprint: raw.Blueprint,
			Metadata: raw.Metadata, CommitMessage: raw.CommitMessage, ExternalIDs: []any{}, CreatedAt: raw.CreatedAt, UpdatedAt: raw.CreatedAt,
		})
	}

	return list, true, nil
}

// largestPage is how many bytes a page of so many of these templates may have.
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

// newest picks, for each template of an account that is held, the copy of its newest version and the copy that was read last, which
// knows its labels. age is for how long the oldest of them has not been confirmed.
func (c *Cache) newest(account string) (newest, read map[string]*entry, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	newest, read = make(map[string]*entry), make(map[string]*entry)
	for k, e := range c.entries.byKey {
		if k.account != account {
			continue
		}
		name := e.about.name
		if other := newest[name]; other == nil || cmp.Or(cmp.Compare(e.about.version, other.about.version), cmp.Compare(e.about.revision, other.about.revision)) > 0 {
			newest[name] = e
		}
		if other := read[name]; other == nil || e.about.revision > other.about.revision {
			read[name] = e
		}
	}
	for _, e := range read {
		age = max(age, c.now().Sub(c.confirmed(e)))
	}

	return newest, read, age
}
