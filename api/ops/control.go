package ops

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// Keys creates, lists, rotates and revokes keys. On a server it is auth.
type Keys interface {
	CreateKey(ctx context.Context, n wire.NewKey) (wire.Secret, wire.Key, error)
	RotateKey(ctx context.Context, id string, overlap time.Duration) (
		secret wire.Secret, made, old wire.Key, err error)
	Keys(ctx context.Context) ([]wire.Key, error)
	RevokeKey(ctx context.Context, id string) (wire.Key, error)
}

// ControlConfig is what the control socket gives access to. The routes of a part that is
// nil answer 501.
type ControlConfig struct {
	Keys     Keys
	Audit    wire.AuditLog // of what is done with Keys; nil notes nothing
	People   People
	Server   string // the URL at which the process takes requests, if it does
	Spool    Spool
	Archive  Archive
	Status   func() any   // required; may be called concurrently
	Ready    func() error // as Config.Ready; nil means it is always ready
	Settings func() any   // required; the configuration in force, without secrets; as Status
	Logger   *slog.Logger
}

// NewKey asks for a key.
type NewKey struct {
	wire.NewKey
	Shared bool `json:"shared,omitempty"` // also for an account that was founded by signing up
}

// Rotation asks for the successor of a key.
type Rotation struct {
	ID      string        `json:"id"`
	Overlap time.Duration `json:"overlap"` // how long the old key still works, in nanoseconds
}

// RotatedKey is the successor of a key, with its secret.
type RotatedKey struct {
	CreatedKey
	Old wire.Key `json:"old"`
}

// CreatedKey is a key with its secret, which is shown only this once.
type CreatedKey struct {
	wire.Key
	Secret string `json:"key"`
}

// KeyList is all keys of a server.
type KeyList struct {
	Items []wire.Key `json:"items"`
}

// NewControl makes the server of the control socket.
func NewControl(c ControlConfig) *Server {
	routes := slices.Concat(
		served(c.Spool != nil, spoolRoutes(c.Spool),
			"This process has no spool; a sidecar does. Give the sidecar's data folder as --data."),
		served(c.Archive != nil, archiveRoutes(c.Archive, c.Logger),
			"This process has no archive; a server does. Give the server's data folder as --data."),
		profileRoutes(),
		served(c.People != nil, peopleRoutes(c.People, c.Server),
			"This process has no sign-in; only a server has a dashboard. "+
				"Give the server's data folder as --data."),
		served(c.People != nil && c.Keys != nil, projectRoutes(c),
			"This process has no projects; a server does. Give the server's data folder as --data."),
		processRoutes(c),
		served(c.Keys != nil, keyRoutes(c),
			"This process keeps no keys; a server does. Give the server's data folder as --data."),
	)
	server := newServer(c.Logger, nil, routes)

	// An export takes as long as its reader does, and that is the process's own user.
	server.s.HTTP.WriteTimeout = 0
	return server
}

// served returns the routes of a part or, if the process does not have it, routes that answer 501
// with why.
func served(has bool, routes []route, why string) []route {
	if !has {
		for i := range routes {
			routes[i].handle = func(*fasthttp.RequestCtx) (any, error) {
				return nil, wire.Errorf(wire.CodeNotImplemented, "%s", why)
			}
		}
	}

	return routes
}

// processRoutes show the state and the settings of the process.
func processRoutes(c ControlConfig) []route {
	return []route{
		{"GET", "/address", func(*fasthttp.RequestCtx) (any, error) { return map[string]string{"url": c.Server}, nil }},
		{"GET", "/status", func(*fasthttp.RequestCtx) (any, error) { return c.Status(), nil }},
		{"GET", "/readyz", Config{Ready: c.Ready}.ready},
		{"GET", "/config", func(*fasthttp.RequestCtx) (any, error) { return c.Settings(), nil }},
	}
}

// keyRoutes manage keys.
func keyRoutes(c ControlConfig) []route {
	keys := c.Keys
	note := func(ctx context.Context, action string, k wire.Key, detail string) {
		wire.NoteAudit(ctx, c.Audit, c.Logger, k.AccountID, wire.AuditEntry{
			At:     time.Now().UTC(),
			Actor:  wire.Operator,
			Action: action,
			Target: k.ID,
			Detail: detail,
		})
	}

	return []route{
		{"GET", "/keys", func(ctx *fasthttp.RequestCtx) (any, error) {
			all, err := keys.Keys(ctx)
			return KeyList{Items: append([]wire.Key{}, all...)}, err
		}},
		{"POST", "/keys", posted(func(ctx context.Context, n NewKey) (any, error) {
			if err := checkShared(ctx, c.People, n); err != nil {
				return nil, err
			}

			secret, key, err := keys.CreateKey(ctx, n.NewKey)
			if err == nil {
				note(ctx, "create key", key, key.AuditDetail())
			}
			return CreatedKey{key, string(secret)}, err
		})},
		{"POST", "/keys/rotate", posted(func(ctx context.Context, r Rotation) (any, error) {
			secret, made, old, err := keys.RotateKey(ctx, r.ID, r.Overlap)
			if err == nil {
				note(ctx, "rotate key", old, old.AuditDetail())
			}
			return RotatedKey{CreatedKey{made, string(secret)}, old}, err
		})},
		{"DELETE", "/keys/", func(ctx *fasthttp.RequestCtx) (any, error) {
			k, err := keys.RevokeKey(ctx, strings.TrimPrefix(string(ctx.Path()), "/keys/"))
			if err == nil {
				note(ctx, "revoke key", k, k.Name)
			}
			return k, err
		}},
	}
}
