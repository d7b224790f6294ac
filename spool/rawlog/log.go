package rawlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Log passes Badger's log on to ours, and reports a failure that Badger only logs. Badger calls the
// methods from its own goroutines, too.
type Log struct {
	Logger *slog.Logger

	Failure string      // the error begins with it; see the version of Badger that is pinned
	Fail    func(error) // must be safe for concurrent use
}

// Errorf logs an error of Badger's as a warning, and reports the failure.
func (l Log) Errorf(format string, args ...any) {
	text := "badger: " + strings.TrimSpace(fmt.Sprintf(format, args...))
	l.Logger.Warn(text)

	if strings.HasPrefix(format, l.Failure) {
		l.Fail(errors.New(text))
	}
}

// Warningf logs a warning of Badger's.
func (l Log) Warningf(format string, args ...any) {
	l.Logger.Warn("badger: " + strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Infof logs what Badger did, at debug level.
func (l Log) Infof(format string, args ...any) {
	// Badger logs a lot, and formatting it would cost more than dropping it.
	if l.Logger.Enabled(context.Background(), slog.LevelDebug) {
		l.Logger.Debug("badger: " + strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}

// Debugf drops details of Badger's.
func (l Log) Debugf(string, ...any) {}
