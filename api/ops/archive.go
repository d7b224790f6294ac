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

	"promptspool/api/wire"
)

// Archive is what the control socket gives access to of a server's archive. Its methods may be called concurrently, and end with ctx.
type Archive interface {
	// Backup writes a backup, which says by itself whether it is whole.
	Backup(ctx context.Context, w io.Writer) error
	// Check reads everything and reports; the report is encoded as JSON. What is wrong is an error.
	Check(ctx context.Context) (any, error)
}

// readerPatience is how long whoever takes a backup may stop reading: while it is written, the database cannot be closed.
const readerPatience = 15 * time.Second

// archiveRoutes are the control socket's routes of an archive.
func archiveRoutes(a Archive, logger *slog.Logger) []route {
	if a == nil {
		return []route{{"GET", "/archive/check", noArchive}, {"GET", "/archive/backup", noArchive}}
	}
	return []route{
		{"GET", "/archive/check", func(*fasthttp.RequestCtx) (any, error) { return a.Check(context.Background()) }},
		{"GET", "/archive/backup", func(ctx *fasthttp.RequestCtx) (any, error) {
			conn := ctx.Conn()
			ctx.SetContentType("application/octet-stream")
			ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
				// This runs in a goroutine of fasthttp's own, where a panic would end the process.
				defer func() {
					if p := recover(); p != nil {
						logger.Error("a backup panicked", "panic", p, "stack", string(debug.Stack()))
					}
				}()
				if err := a.Backup(context.Background(), patient{w, conn}); err != nil {
					logger.Error("a backup broke off", "error", err)
				}
			})
			return nil, nil
		}},
	}
}

// noArchive answers for a process that has none.
func noArchive(*fasthttp.RequestCtx) (any, error) {
	return nil, wire.Errorf(wire.CodeNotImplemented, "This process has no archive; a server does. Give the server's data folder as --data.")
}

// patient gives whoever reads a while for each piece.
type patient struct {
	w    io.Writer
	conn net.Conn
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.conn.SetWriteDeadline(time.Now().Add(readerPatience)); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}
