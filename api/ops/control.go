package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// SocketName is the control socket's name in the data folder.
const SocketName = "control.sock"

// Keys makes, lists and revokes keys. On a server it is auth.
type Keys interface {
	CreateKey(ctx context.Context, account, name string, scope wire.Scope) (wire.Secret, wire.Key, error)
	Keys(ctx context.Context) ([]wire.Key, error)
	RevokeKey(ctx context.Context, id string) (wire.Key, error)
}

// ControlConfig is what the control socket gives access to. A capability that is nil answers 404.
type ControlConfig struct {
	Keys   Keys
	Status func() any
	Logger *slog.Logger
}

// NewKey asks for a key.
type NewKey struct {
	Account string     `json:"account"`
	Name    string     `json:"name"`
	Scope   wire.Scope `json:"scope"`
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
	routes := map[string]handler{
		"GET /status": func(*fasthttp.RequestCtx) (any, error) { return c.Status(), nil },
	}
	if c.Keys != nil {
		routes["GET /keys"] = func(ctx *fasthttp.RequestCtx) (any, error) {
			keys, err := c.Keys.Keys(ctx)
			return KeyList{Items: append([]wire.Key{}, keys...)}, err
		}
		routes["POST /keys"] = func(ctx *fasthttp.RequestCtx) (any, error) {
			var n NewKey
			if err := json.Unmarshal(ctx.PostBody(), &n); err != nil {
				return nil, wire.Errorf(wire.CodeBadJSON, "The body is not a key to make: %v", err)
			}
			secret, key, err := c.Keys.CreateKey(ctx, n.Account, n.Name, n.Scope)
			return CreatedKey{key, string(secret)}, err
		}
		routes["DELETE /keys/"] = func(ctx *fasthttp.RequestCtx) (any, error) {
			return c.Keys.RevokeKey(ctx, strings.TrimPrefix(string(ctx.Path()), "/keys/"))
		}
	}
	return newServer(c.Logger, routes)
}

// ListenControl makes the control socket in a data folder that this process alone has open; a socket left by a process
// that was killed is replaced. Mode 0600.
func ListenControl(dataDir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dataDir, SocketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var ln net.Listener
	err := atShortPath(dataDir, func(path string) (err error) {
		if ln, err = net.Listen("unix", path); err != nil {
			return err
		}
		return os.Chmod(path, 0o600) // until here the folder's own mode, 0700, keeps others out
	})
	if err != nil {
		return nil, fmt.Errorf("the control socket in %s: %w", dataDir, err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // a short path means nothing any more by then; the next start removes it
	return ln, nil
}

// atShortPath calls f with a path of the socket that fits the 107 bytes of a unix address, however deep the folder lies.
func atShortPath(dataDir string, f func(path string) error) error {
	path := filepath.Join(dataDir, SocketName)
	if len(path) <= 100 {
		return f(path)
	}
	dir, err := os.Open(dataDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return f("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + SocketName)
}

// Control calls the control socket in a process's data folder: method and path, body and answer as JSON (nil: none). An error
// that the process answered is a *wire.Error.
func Control(ctx context.Context, dataDir, method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		err = atShortPath(dataDir, func(path string) (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
			return err
		})
		return conn, err
	}}}
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return fmt.Errorf("no process listens on the control socket in %s (%w). Is it running, and is --data its folder?", dataDir, err)
	}
	defer res.Body.Close()
	text, err = io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return err
	}
	if res.StatusCode != 200 {
		e := &wire.Error{Code: wire.CodeOfStatus(res.StatusCode)}
		var told struct{ Message string }
		if json.Unmarshal(text, &told) == nil {
			e.Message = told.Message
		}
		return e
	}
	return json.Unmarshal(text, answer)
}
