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
	Editor
}

// Editor is what people and CI do with templates: a sidecar passes it on.
type Editor interface {
	Source(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error)
	Patch(ctx context.Context, id wire.Identity, ident string, p wire.TemplatePatch) (wire.Published, error)
	Labels(ctx context.Context, id wire.Identity, ident string) (wire.Labels, error)
	CreateLabel(ctx context.Context, id wire.Identity, ident string, w wire.LabelWrite, by string) (wire.PlacedLabel, error)
	MoveLabel(ctx context.Context, id wire.Identity, label int64, version int, by string) (wire.PlacedLabel, error)
	DeleteLabel(ctx context.Context, id wire.Identity, label int64, by string) error
	Archive(ctx context.Context, id wire.Identity, ident string) error
	Restore(ctx context.Context, id wire.Identity, ident string) error
}
