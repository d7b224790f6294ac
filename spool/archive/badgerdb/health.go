package badgerdb

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/rawlog"
)

// retryAfter is when a caller may try again while the database takes no writes.
const retryAfter = 5 * time.Second

// health remembers the first failed commit. After one, the database takes no more writes: Linux reports a failed fsync
// once and may drop the pages, so a later fsync that succeeds proves nothing about the earlier writes; and a
// commit that failed halfway may show in memory what is not on disk. Opening the database again reads what is there.
type health struct {
	mu     sync.Mutex
	err    error      // under mu
	failed chan error // gets err, once
}

func newHealth() *health { return &health{failed: make(chan error, 1)} }

// fail takes the first failed commit.
func (h *health) fail(err error) {
	h.end(err, fmt.Errorf("a write to the database could not be made durable: %w", err))
}

// end takes the first error after which nothing more is written, and tells it as told.
func (h *health) end(err, told error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
		h.failed <- told
	}
}

// guard calls fn, which reads the database. If the disk cannot read a block under it, the process
// must end: Badger may hold locks, and only opening replaces the file. It protects the calling
// goroutine; a fault in one of Badger's own ends the process by itself.
func (h *health) guard(dir string, fn func() error) error {
	err := rawlog.Guard(dir, fn)
	if fault := (*rawlog.FaultError)(nil); errors.As(err, &fault) {
		h.end(err, err)
		e := wire.Unavailable(retryAfter, "The disk cannot read a part of the archive. Start the server again, or run "+
			"`promptspool archive check` while none runs: both leave out what cannot be read, and say what it was.")
		e.Cause = err
		return e
	}
	return err
}

// Failed delivers one error when a commit has failed. The process must end then: only a new start can tell what is on disk.
func (db *DB) Failed() <-chan error { return db.commit.health.failed }

// fault is nil, or the error for every write from now on.
func (h *health) fault() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		return nil
	}
	e := wire.Unavailable(retryAfter, "The server could not write to its disk and takes no more writes. Check the disk, then restart it.")
	e.Cause = h.err
	return e
}

func errClosed() error {
	return wire.Unavailable(retryAfter, "The server's database is closed; the server is stopping.")
}

// badgerLog passes what Badger says to ours, its chatter as debug, and hears of the one failure that Badger tells only
// its log.
type badgerLog struct {
	logger *slog.Logger
	health *health
}

func (l badgerLog) Errorf(format string, args ...any) {
	text := line(format, args)
	l.logger.Error("badger: " + text)
	if strings.HasPrefix(format, rawlog.FailedSync) {
		l.health.fail(errors.New(text))
	}
}

func (l badgerLog) Warningf(format string, args ...any) {
	l.logger.Warn("badger: " + line(format, args))
}
func (l badgerLog) Infof(format string, args ...any)  { l.logger.Debug("badger: " + line(format, args)) }
func (l badgerLog) Debugf(format string, args ...any) {}

func line(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}
