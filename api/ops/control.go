package ops

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// ControlConfig is what the control socket gives access to. The routes of a part that is
// nil answer 501.
type ControlConfig struct {
	Keys     wire.Keys
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
func NewControl(c ControlConfig) *edge.Server {
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
	server.WriteTimeout = 0

	// Our own user may open any number of connections.
	return edge.NewServer(server, nil)
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

// Archive is what the control socket gives access to of a server's archive. Its methods
// may be called concurrently, and end with ctx.
type Archive interface {
	// Backup writes a backup. A truncated one is recognised when it is restored.
	Backup(ctx context.Context, w io.Writer) error

	// Check reads everything and returns a report, which is encoded as JSON. Damage is an
	// error.
	Check(ctx context.Context) (any, error)
}

// backupReadTimeout is how long the reader of a backup may stop reading. While a backup
// is written, the database cannot be closed.
const backupReadTimeout = 15 * time.Second

// archiveRoutes are the control socket's routes of an archive.
func archiveRoutes(a Archive, logger *slog.Logger) []route {
	return []route{
		{"GET", "/archive/check", func(*fasthttp.RequestCtx) (any, error) {
			return a.Check(context.Background())
		}},
		{"GET", "/archive/backup", func(ctx *fasthttp.RequestCtx) (any, error) {
			streamBackup(ctx, a, logger)
			return nil, nil
		}},
	}
}

// streamBackup answers with a backup while it is written.
func streamBackup(ctx *fasthttp.RequestCtx, a Archive, logger *slog.Logger) {
	// ctx must not be used once its handler has returned.
	conn := ctx.Conn()
	ctx.SetContentType("application/octet-stream")

	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		// This runs in a goroutine of fasthttp's own, where a panic would end the
		// process.
		defer func() {
			if p := recover(); p != nil {
				logger.Error("a backup panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()

		if err := a.Backup(context.Background(), deadlineWriter{w, conn}); err != nil {
			logger.Error("a backup broke off", "error", err)
		}
	})
}

// deadlineWriter gives the reader of a connection backupReadTimeout for each piece. The control
// socket's connections take deadlines from any goroutine; those of package edge do not.
type deadlineWriter struct {
	w    io.Writer
	conn net.Conn
}

func (d deadlineWriter) Write(b []byte) (int, error) {
	if err := d.conn.SetWriteDeadline(time.Now().Add(backupReadTimeout)); err != nil {
		return 0, err
	}
	return d.w.Write(b)
}

// Spool is what the control socket gives access to of a sidecar's spool. Its methods may
// be called concurrently, and end with ctx.
type Spool interface {
	// Check reads everything and returns a report, which is encoded as JSON.
	Check(ctx context.Context) (any, error)

	// Events yields the events of a lane, or with lane "" those waiting in the spool.
	Events(ctx context.Context, lane string) iter.Seq2[SpoolEvent, error]

	// Replay moves the picked events of a lane back to the spool, and returns how many.
	// They are durable there before they leave the lane.
	Replay(ctx context.Context, p Pick) (int, error)

	// Purge deletes the picked events of a lane, and returns how many.
	Purge(ctx context.Context, p Pick) (int, error)
}

// SpoolEvent is an event as a spool has it. Instead of the key, it holds the key's
// number.
type SpoolEvent struct {
	Seq     uint64    `json:"sequence"`
	Key     uint32    `json:"key_number"`
	At      time.Time `json:"spooled_at"`
	Lane    string    `json:"lane,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Cause   string    `json:"cause,omitempty"` // "limit" if the event's record is at a limit
	MovedAt time.Time `json:"moved_at,omitzero"`
	Data    []byte    `json:"data"`            // the event's line, as it is on disk
	Error   string    `json:"error,omitempty"` // why it cannot be read; Data is empty then
}

// Pick selects events of a lane.
type Pick struct {
	Lane      string   `json:"lane"` // "" for every lane
	Sequences []uint64 `json:"sequences,omitempty"`
	All       bool     `json:"all,omitempty"`

	// Key is, for Replay, the secret key that replaces those of the events.
	Key string `json:"key,omitempty"`
}

// Moved is the answer to a Replay or a Purge.
type Moved struct {
	Events int `json:"events"`
}

// spoolRoutes are the control socket's routes of a spool.
func spoolRoutes(s Spool) []route {
	return []route{
		{"GET", "/spool/check", func(ctx *fasthttp.RequestCtx) (any, error) { return s.Check(ctx) }},
		{"GET", "/spool/events", func(ctx *fasthttp.RequestCtx) (any, error) {
			streamEvents(ctx, s)
			return nil, nil
		}},
		{"POST", "/spool/replay", moving(s, Spool.Replay)},
		{"POST", "/spool/purge", moving(s, Spool.Purge)},
	}
}

// moving returns a handler that moves the events that the body selects.
func moving(s Spool, move func(Spool, context.Context, Pick) (int, error)) handler {
	return posted(func(ctx context.Context, p Pick) (any, error) {
		n, err := move(s, ctx, p)
		return Moved{n}, err
	})
}

// streamEvents answers with one event a line. ?lane= names a lane.
func streamEvents(ctx *fasthttp.RequestCtx, s Spool) {
	lane := string(ctx.QueryArgs().Peek("lane"))
	ctx.SetContentType("application/x-ndjson")

	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		encoder := json.NewEncoder(w)

		// This runs in a goroutine of fasthttp's own, where a panic would end the
		// process. An error after the events streamed so far keeps readers from taking
		// them for all.
		defer func() {
			if p := recover(); p != nil {
				slog.Error("streaming the spool's events panicked",
					"panic", p, "stack", string(debug.Stack()))
				_ = encoder.Encode(SpoolEvent{Error: panicMessage})
			}
		}()

		// The context of the request ends before the stream does.
		for e, err := range s.Events(context.Background(), lane) {
			if err != nil {
				e.Data, e.Error = nil, err.Error()
			}
			if encoder.Encode(e) != nil {
				return // the client has disconnected
			}
		}
	})
}

// SocketName is the control socket's name in the data folder.
const SocketName = "control.sock"

const (
	controlTimeout        = time.Minute // for an answer
	controlAnswerBytesMax = 64 << 20
)

// ListenControl creates the control socket in a data folder that this process alone has
// open.
//
// The socket of a process that was killed is replaced. The mode is 0600 from the first
// moment, whatever the folder's is. The socket stays in the folder when the listener
// closes; the next start replaces it.
func ListenControl(dataDir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dataDir, SocketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the control socket of an earlier process cannot be replaced: %w", err)
	}

	var ln net.Listener
	err := withShortPath(dataDir, func(path string) (err error) {
		ln, err = edge.ListenUnix(path, 0o600)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the control socket in %s: %w", dataDir, err)
	}

	// When the listener closes, a short path may mean another file.
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	return ln, nil
}

// socketPathMax fits into the 103 bytes of an address on macOS, with what edge.ListenUnix
// adds to it.
const socketPathMax = 80

// withShortPath calls f with a path of the socket that fits into an address, however long
// the folder's own path is. The path is valid until f returns.
func withShortPath(dataDir string, f func(path string) error) error {
	path := filepath.Join(dataDir, SocketName)
	if len(path) <= socketPathMax {
		return f(path)
	}

	short, done, err := edge.ShortPath(dataDir)
	if err != nil {
		return err
	}
	defer done()
	return f(filepath.Join(short, SocketName))
}

// Control calls the control socket in a process's data folder.
//
// The body, unless it is nil, and the answer are JSON. An error that the process answered
// is a *wire.Error. The request ends with ctx, or after a minute.
func Control(ctx context.Context, dataDir, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()

	return ControlLong(ctx, dataDir, method, path, body, func(r io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(r, controlAnswerBytesMax))
		if err != nil {
			return err
		}
		return json.Unmarshal(text, answer)
	})
}

// ControlLong is Control for answers that are long or take long. It calls read with the
// body of a successful answer as it arrives, and ends with ctx only.
func ControlLong(
	ctx context.Context, dataDir, method, path string, body any, read func(io.Reader) error,
) error {
	var sent []byte
	if body != nil {
		var err error
		sent, err = json.Marshal(body)
		if err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}

	res, err := socketClient(dataDir).Do(req)
	if err != nil {
		return unreachable(dataDir, err)
	}
	defer res.Body.Close()

	if res.StatusCode != 200 {
		return answeredError(dataDir, res)
	}

	err = read(res.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) { // the answer broke off
		return unreachable(dataDir, err)
	}

	return err
}

// socketClient returns a client that connects to the control socket, whatever the URL's
// host.
func socketClient(dataDir string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		err = withShortPath(dataDir, func(path string) (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
			return err
		})
		return conn, err
	}

	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// answeredError returns the error that a process answered.
func answeredError(dataDir string, res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, controlAnswerBytesMax))
	if err != nil {
		return unreachable(dataDir, err)
	}

	var answer wire.ErrorBody
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("the process in %s answered with status %d and no reason", dataDir, res.StatusCode)
	}
	return &wire.Error{Code: answer.Error, Message: answer.Message, Fields: answer.Fields}
}

// unreachable returns why a process did not answer, and what to do about it.
func unreachable(dataDir string, err error) error {
	// Without the URL: "http://control" would only confuse.
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}

	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("the control socket in %s is another user's; "+
			"run this as the user of the process: %w", dataDir, err)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no process runs on the data folder %s: "+
			"start it, or give its folder as --data (%w)", dataDir, err)
	}

	return fmt.Errorf("the process in %s did not answer: %w", dataDir, err)
}
