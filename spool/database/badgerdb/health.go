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

// retryAfter is when a caller may retry while the database takes no writes.
const retryAfter = 5 * time.Second

// health remembers the first failed commit. After one, the database takes no more writes:
//
//   - Linux reports a failed fsync once and may drop the pages. A later fsync that succeeds proves
//     nothing about the earlier writes.
//   - A commit that failed halfway may show in memory what is not on disk.
//
// Opening the database again reads what is there.
type health struct {
	mu     sync.Mutex
	err    error      // guarded by mu
	failed chan error // gets one error
}

func newHealth() *health { return &health{failed: make(chan error, 1)} }

// fail notes a failed commit, if it is the first.
func (h *health) fail(err error) {
	h.end(err, fmt.Errorf("a write to the database could not be made durable: %w", err))
}

// end notes the first error after which nothing more is written, and delivers report for
// it.
func (h *health) end(err, report error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	// The first only: failed has room for one, and later ones follow from it.
	if h.err == nil {
		h.err = err
		h.failed <- report
	}
}

// guard calls fn, which reads the database. If the disk cannot read a block under it, the
// process must end: Badger may hold locks, and only opening replaces the file. It
// protects the calling goroutine; a fault in one of Badger's own ends the process by
// itself.
func (h *health) guard(dir string, fn func() error) error {
	err := rawlog.Guard(dir, fn)
	if fault := (*rawlog.FaultError)(nil); errors.As(err, &fault) {
		h.end(err, err)

		e := wire.Unavailable(retryAfter, "The disk cannot read a part of the archive. "+
			"Start the server again, or run `promptspool archive check` while it is stopped: "+
			"both leave out what cannot be read, and report what it was.")
		e.Cause = err

		return e
	}
	return err
}

// Failed delivers one error after a commit has failed. The process must end then: only a
// new start can find out what is on disk.
func (db *DB) Failed() <-chan error { return db.commit.health.failed }

// fault returns the error for every write from now on, or nil.
func (h *health) fault() error {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.err == nil {
		return nil
	}

	e := wire.Unavailable(retryAfter, "The server could not write to its disk and takes no more writes. "+
		"Check the disk, then restart the server.")
	e.Cause = h.err
	return e
}

// errClosed is for every call after Close has begun.
func errClosed() error {
	return wire.Unavailable(retryAfter, "The server's database is closed; the server is stopping.")
}

// failedSync begins the line that Badger 4.9.6 logs when it cannot sync its value log.
// See value.go, valueLog.write. Nothing else shows the failure: the commit succeeds.
const failedSync = "Error while curlf sync"

// badgerLog passes Badger's log to ours, its chatter as debug. It watches for the one
// failure that Badger reports nowhere else.
type badgerLog struct {
	logger *slog.Logger
	health *health
}

func (l badgerLog) Errorf(format string, args ...any) {
	text := line(format, args)
	l.logger.Error("badger: " + text)

	// Badger goes on after it, and reports the commit as done.
	if strings.HasPrefix(format, failedSync) {
		l.health.fail(errors.New(text))
	}
}

func (l badgerLog) Warningf(format string, args ...any) {
	l.logger.Warn("badger: " + line(format, args))
}

func (l badgerLog) Infof(format string, args ...any)  { l.logger.Debug("badger: " + line(format, args)) }
func (l badgerLog) Debugf(format string, args ...any) {}

// line formats a message without the newline that Badger may put at its end.
func line(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}
