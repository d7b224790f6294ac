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

// Keys makes, lists and revokes keys. On a server it is auth.
type Keys interface {
	CreateKey(ctx context.Context, account, name string, scope wire.Scope) (wire.Secret, wire.Key, error)
	Keys(ctx context.Context) ([]wire.Key, error)
	RevokeKey(ctx context.Context, id string) (wire.Key, error)
}

// ControlConfig is what the control socket gives access to.
type ControlConfig struct {
	Keys     Keys       // nil at a process that keeps none: 501
	People   People     // nil at a process that has none: 501
	Server   string     // the URL at which the process takes calls; "" if there is none
	Spool    Spool      // nil at a process that has none: 501
	Archive  Archive    // nil at a process that has none: 501
	Status   func() any // required; may be called concurrently
	Settings Settings   // nil at a process without any: 501
	Logger   *slog.Logger
}

// Settings tells what configuration is in force, without secrets. It may be called concurrently.
type Settings interface{ Settings() any }

// NewKey asks for a key.
type NewKey struct {
	Account string     `json:"account"`
	Name    string     `json:"name"`
	Scope   wire.Scope `json:"scope"`
	Shared  bool       `json:"shared,omitempty"` // also of an account that somebody founded by signing up
}

// CreatedKey is a key with its secret, which is shown this once.
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
	keys := c.Keys
	if keys == nil {
		keys = noKeys{}
	}
	server := newServer(c.Logger, nil, slices.Concat(spoolRoutes(c.Spool), archiveRoutes(c.Archive, c.Logger), profileRoutes(),
		peopleRoutes(c.People, c.Server), []route{
			{"GET", "/status", func(*fasthttp.RequestCtx) (any, error) { return c.Status(), nil }},
			{"GET", "/config", func(*fasthttp.RequestCtx) (any, error) {
				if c.Settings == nil {
					return nil, wire.Errorf(wire.CodeNotImplemented, "This process cannot tell its settings; `promptspool config print FILE` shows a file's.")
				}
				return c.Settings.Settings(), nil
			}},
			{"GET", "/keys", func(ctx *fasthttp.RequestCtx) (any, error) {
				all, err := keys.Keys(ctx)
				return KeyList{Items: append([]wire.Key{}, all...)}, err
			}},
			{"POST", "/keys", func(ctx *fasthttp.RequestCtx) (any, error) {
				var n NewKey
				if err := json.Unmarshal(ctx.PostBody(), &n); err != nil {
					return nil, wire.Errorf(wire.CodeBadJSON, "The body is not a key to make: %v", err)
				}
				if err := mayShare(ctx, c.People, n); err != nil {
					return nil, err
				}
				secret, key, err := keys.CreateKey(ctx, n.Account, n.Name, n.Scope)
				return CreatedKey{key, string(secret)}, err
			}},
			{"DELETE", "/keys/", func(ctx *fasthttp.RequestCtx) (any, error) {
				return keys.RevokeKey(ctx, strings.TrimPrefix(string(ctx.Path()), "/keys/"))
			}},
		}))
	server.s.WriteTimeout = 0 // an export takes as long as its reader does, who is the process's own user
	return server
}

// noKeys answers for a process that keeps no keys.
type noKeys struct{}

var errNoKeys = wire.Errorf(wire.CodeNotImplemented, "This process keeps no keys; a server does. Give the server's data folder as --data.")

func (noKeys) CreateKey(context.Context, string, string, wire.Scope) (wire.Secret, wire.Key, error) {
	return "", wire.Key{}, errNoKeys
}
func (noKeys) Keys(context.Context) ([]wire.Key, error)            { return nil, errNoKeys }
func (noKeys) RevokeKey(context.Context, string) (wire.Key, error) { return wire.Key{}, errNoKeys }
