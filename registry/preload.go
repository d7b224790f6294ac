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
