package registry

import (
	"context"

	"promptspool/api/wire"
)

// Upstream is the server as a sidecar's Cache sees it: Registry's methods over HTTP. Every method may be called at the same
// time as any other and ends when ctx does. Errors that the server itself gave are *wire.Error; wire.CodeUnavailable,
// and any other error, mean that the server is away. What a method returns belongs to the caller.
type Upstream interface {
	Raw(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error)
	Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error)
	List(ctx context.Context, id wire.Identity, q wire.TemplateListQuery) (wire.TemplateList, error)
	Changes(ctx context.Context, id wire.Identity, q wire.ChangesQuery) (wire.Changes, error)
	wire.TemplateEditor
}
