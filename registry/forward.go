package registry

import (
	"context"

	"promptspool/api/wire"
)

// A Cache forwards to the server what changes templates, and what only people and CI
// read. After a change the account's copies count as outdated, whatever the feed has
// reported by then.

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

// Source forwards a request for a version as it was published.
func (c *Cache) Source(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (wire.RawTemplate, error) {
	raw, err := c.config.Upstream.Source(ctx, id, ident, s)
	return raw, orUnavailable(err)
}

// Labels forwards a request for a template's labels.
func (c *Cache) Labels(ctx context.Context, id wire.Identity, ident string) (wire.Labels, error) {
	out, err := c.config.Upstream.Labels(ctx, id, ident)
	return out, orUnavailable(err)
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

	return orUnavailable(err)
}
