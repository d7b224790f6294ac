package ops

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"
)

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
	conn := ctx.Conn() // ctx must not be used once its handler has returned
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
