package wire

import "context"

// TemplateEditor changes templates and their labels, and reads what that takes. by is who does it; "" is the
// identity's key. A sidecar passes all of it on to the server.
type TemplateEditor interface {
	Source(ctx context.Context, id Identity, ident string, s Selector) (RawTemplate, error)
	Patch(ctx context.Context, id Identity, ident string, p TemplatePatch) (Published, error)
	Labels(ctx context.Context, id Identity, ident string) (Labels, error)
	CreateLabel(ctx context.Context, id Identity, ident string, w LabelWrite, by string) (PlacedLabel, error)
	MoveLabel(ctx context.Context, id Identity, label int64, version int, by string) (PlacedLabel, error)
	DeleteLabel(ctx context.Context, id Identity, label int64, by string) error
	Archive(ctx context.Context, id Identity, ident string) error
	Restore(ctx context.Context, id Identity, ident string) error
}
