package registry

import (
	"context"

	"promptspool/api/wire"
)

// What changes templates, and what only people and CI read, a Cache passes to the server. After a change the account's copies are
// asked for anew, whatever the feed has told by then.

// Publish passes a publish on. The copies of that name are asked for anew from then on.
func (c *Cache) Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error) {
	out, err := c.upstream.Publish(ctx, id, p)
	c.edited(id, err, p.Name)
	return out, orAway(err)
}

// Patch passes a patch on.
func (c *Cache) Patch(ctx context.Context, id wire.Identity, ident string, p wire.TemplatePatch) (wire.Published, error) {
	out, err := c.upstream.Patch(ctx, id, ident, p)
	c.edited(id, err, ident)
	return out, orAway(err)
}

// Source passes a question for a version as it was published on.
func (c *Cache) Source(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error) {
	raw, err := c.upstream.Source(ctx, id, ident, s)
	return raw, orAway(err)
}

// Labels passes a question for labels on.
func (c *Cache) Labels(ctx context.Context, id wire.Identity, ident string) (wire.Labels, error) {
	out, err := c.upstream.Labels(ctx, id, ident)
	return out, orAway(err)
}

// CreateLabel passes a new label on.
func (c *Cache) CreateLabel(ctx context.Context, id wire.Identity, ident string, w wire.LabelWrite, by string) (wire.PlacedLabel, error) {
	out, err := c.upstream.CreateLabel(ctx, id, ident, w, by)
	c.edited(id, err, ident)
	return out, orAway(err)
}

// MoveLabel passes the move of a label on.
func (c *Cache) MoveLabel(ctx context.Context, id wire.Identity, label int64, version int, by string) (wire.PlacedLabel, error) {
	out, err := c.upstream.MoveLabel(ctx, id, label, version, by)
	c.edited(id, err, "")
	return out, orAway(err)
}

// DeleteLabel passes on that a label goes.
func (c *Cache) DeleteLabel(ctx context.Context, id wire.Identity, label int64, by string) error {
	err := c.upstream.DeleteLabel(ctx, id, label, by)
	c.edited(id, err, "")
	return orAway(err)
}

// Archive passes on that a template goes out of use.
func (c *Cache) Archive(ctx context.Context, id wire.Identity, ident string) error {
	err := c.upstream.Archive(ctx, id, ident)
	c.edited(id, err, ident)
	return orAway(err)
}

// Restore passes on that a template comes back.
func (c *Cache) Restore(ctx context.Context, id wire.Identity, ident string) error {
	err := c.upstream.Restore(ctx, id, ident)
	c.edited(id, err, ident)
	return orAway(err)
}

// edited has the copies of a template asked for anew, or all of the account's if it is not known which changed: unless the
// server refused the change.
func (c *Cache) edited(id wire.Identity, err error, ident string) {
	if err != nil && definite(err) {
		return // a server that did not answer may have made the change all the same
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renew(id.Account)
	if ident != "" {
		c.invalidate(id.Account, []string{ident}, everyRevision)
		return
	}
	c.mark(id.Account, func(e *entry) bool { return !e.key.pinned() })
}
