package registry

import (
	"context"

	"promptspool/api/wire"
)

// Upstream is the server as a sidecar's Cache sees it: Registry's methods over HTTP.
//
// All methods may be called concurrently, and end when ctx does. Errors from the server
// itself are *wire.Error; wire.CodeUnavailable, and any other error, mean that the server
// is away. The caller owns what a method returns.
type Upstream interface {
	Raw(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error)
	Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error)
	List(ctx context.Context, id wire.Identity, q wire.TemplateListQuery) (wire.TemplateList, error)
	Changes(ctx context.Context, id wire.Identity, q wire.ChangesQuery) (wire.Changes, error)
	wire.TemplateEditor
}
