package ops

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// Keys creates, lists and revokes keys. On a server it is auth.
type Keys interface {
	CreateKey(ctx context.Context, account, name string, scope wire.Scope) (wire.Secret, wire.Key, error)
	Keys(ctx context.Context) ([]wire.Key, error)
	RevokeKey(ctx context.Context, id string) (wire.Key, error)
}

// ControlConfig is what the control socket gives access to. The routes of a part that is
// nil answer 501.
type ControlConfig struct {
	Keys     Keys
	People   People
	Server   string // the URL at which the process takes calls, if it does
	Spool    Spool
	Archive  Archive
	Status   func() any   // required; may be called concurrently
	Ready    func() error // as Config.Ready; nil: it is always ready
	Settings Settings
	Logger   *slog.Logger
}

// Settings returns the configuration in force, without secrets. It may be called
// concurrently.
type Settings interface{ Settings() any }

// NewKey asks for a key.
type NewKey struct {
	Account string     `json:"account"`
	Name    string     `json:"name"`
	Scope   wire.Scope `json:"scope"`
	Shared  bool       `json:"shared,omitempty"` // also for an account that was founded by signing up
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
		spoolRoutes(c.Spool),
		archiveRoutes(c.Archive, c.Logger),
		profileRoutes(),
		peopleRoutes(c.People, c.Server),
		processRoutes(c),
		keyRoutes(c.Keys, c.People),
	)
	server := newServer(c.Logger, nil, routes)

	// An export takes as long as its reader does, and that is the process's own user.
	server.s.HTTP.WriteTimeout = 0
	return server
}

// processRoutes show the state and the settings of the process.
func processRoutes(c ControlConfig) []route {
	return []route{
		{"GET", "/status", func(*fasthttp.RequestCtx) (any, error) { return c.Status(), nil }},
		{"GET", "/readyz", Config{Ready: c.Ready}.ready},
		{"GET", "/config", func(*fasthttp.RequestCtx) (any, error) {
			if c.Settings == nil {
				return nil, wire.Errorf(wire.CodeNotImplemented,
					"This process cannot tell its settings; `promptspool config print FILE` shows a file's.")
			}
			return c.Settings.Settings(), nil
		}},
	}
}

// keyRoutes manage keys.
func keyRoutes(keys Keys, people People) []route {
	if keys == nil {
		keys = noKeys{}
	}

	return []route{
		{"GET", "/keys", func(ctx *fasthttp.RequestCtx) (any, error) {
			all, err := keys.Keys(ctx)
			return KeyList{Items: append([]wire.Key{}, all...)}, err
		}},
		{"POST", "/keys", func(ctx *fasthttp.RequestCtx) (any, error) {
			var n NewKey
			if err := json.Unmarshal(ctx.PostBody(), &n); err != nil {
				return nil, wire.Errorf(wire.CodeBadJSON, "The body is not a key to make: %v", err)
			}
			if err := checkShared(ctx, people, n); err != nil {
				return nil, err
			}

			secret, key, err := keys.CreateKey(ctx, n.Account, n.Name, n.Scope)
			return CreatedKey{key, string(secret)}, err
		}},
		{"DELETE", "/keys/", func(ctx *fasthttp.RequestCtx) (any, error) {
			return keys.RevokeKey(ctx, strings.TrimPrefix(string(ctx.Path()), "/keys/"))
		}},
	}
}

// noKeys answers for a process without keys.
type noKeys struct{}

var errNoKeys = wire.Errorf(wire.CodeNotImplemented,
	"This process keeps no keys; a server does. Give the server's data folder as --data.")

func (noKeys) CreateKey(context.Context, string, string, wire.Scope) (wire.Secret, wire.Key, error) {
	return "", wire.Key{}, errNoKeys
}
func (noKeys) Keys(context.Context) ([]wire.Key, error)            { return nil, errNoKeys }
func (noKeys) RevokeKey(context.Context, string) (wire.Key, error) { return wire.Key{}, errNoKeys }
