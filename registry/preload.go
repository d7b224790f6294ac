package registry

import (
	"context"
	"fmt"
	"strings"
	"time"

	"promptspool/api/wire"
)

const (
	preloadRetry    = time.Second // between attempts while the server is away
	preloadLabel    = "label:"    // a preload of all templates that have a label
	preloadOfName   = "@label:"   // a preload of a name by a label
	preloadListPage = 100
)

// Preload fetches templates in an identity's name, so that they are there when the server goes away before an app asked for them.
// Each of what is NAME (its latest version), NAME@label:LABEL, or label:LABEL (every template that has the label, which takes a key of scope full). While the server is away it
// tries again until ctx ends. Its error names what the server does not have; the rest is fetched all the same.
func (c *Cache) Preload(ctx context.Context, id wire.Identity, what []string) error {
	var missing []string
	for _, w := range what {
		for {
			err := c.preload(ctx, id, w)
			if err == nil {
				break
			}
			if definite(err) {
				missing = append(missing, fmt.Sprintf("%s (%s)", w, wire.AsError(err).Message))
				break
			}
			if sleep(ctx, preloadRetry); ctx.Err() != nil {
				return fmt.Errorf("the templates to preload were not all fetched: %w", err)
			}
		}
	}
	if missing != nil {
		return wire.Errorf(wire.CodeNotFound, "Templates to preload could not be had: %s.", strings.Join(missing, "; "))
	}
	return nil
}

func (c *Cache) preload(ctx context.Context, id wire.Identity, what string) error {
	if label, ok := strings.CutPrefix(what, preloadLabel); ok {
		return c.preloadAll(ctx, id, label)
	}
	name, label, _ := strings.Cut(what, preloadOfName)
	_, err := c.Raw(ctx, id, name, wire.Selector{Label: label})
	return err
}

func (c *Cache) preloadAll(ctx context.Context, id wire.Identity, label string) error {
	for page := 1; ; page++ {
		list, err := c.upstream.List(ctx, id, wire.TemplateListQuery{Page: page, PerPage: preloadListPage, Label: label})
		if err != nil {
			return err
		}
		for _, t := range list.Items {
			if _, err := c.Raw(ctx, id, t.Name, wire.Selector{Label: label}); err != nil && !wire.IsCode(err, wire.CodeNotFound) {
				return err
			}
		}
		if !list.HasNext || page*preloadListPage >= entriesMax {
			return nil
		}
	}
}
