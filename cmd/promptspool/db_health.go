package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"

	"promptspool/api/wire"
	"promptspool/metrics"
)

// dbHealth is whether a server's database answers.
type dbHealth struct {
	away    atomic.Pointer[error] // why it does not answer; nil while it does
	metrics *metrics.Metrics
	logger  *slog.Logger
}

// set notes whether the database answers, and logs each change.
func (h *dbHealth) set(err error) {
	if err == nil {
		h.metrics.ArchiveUp.Set(1)
		// Only the change is logged: this is called every two seconds.
		if h.away.Swap(nil) != nil {
			h.logger.Info("the database is back")
		}
		return
	}

	h.metrics.ArchiveUp.Set(0)
	if h.away.Swap(&err) == nil {
		h.logger.Warn("the database does not answer; writes get 503, and the sidecars keep them", "error", err)
	}
}

// err returns why the server cannot take calls, nil if it can.
func (h *dbHealth) err() error {
	if err := h.away.Load(); err != nil {
		return errors.New(strings.TrimSuffix(wire.AsError(*err).Message, "."))
	}
	return nil
}

// reason is err as a text, "" while the database answers.
func (h *dbHealth) reason() string {
	if err := h.err(); err != nil {
		return err.Error()
	}
	return ""
}

// watch returns what follows a database until its ctx ends. A nil database is one in this process, which
// always answers.
func (h *dbHealth) watch(db remoteDatabase) func(context.Context) error {
	return func(ctx context.Context) error {
		// A database in this process is not watched: its metric would stay at 0.
		h.set(nil)
		if db == nil {
			<-ctx.Done()
			return nil
		}

		return db.WatchHealth(ctx, func(err error) {
			h.set(err)
			used, most := db.Connections()
			h.metrics.ArchiveConns.Set(float64(used))
			h.metrics.ArchiveConnsMax.Set(float64(most))
		})
	}
}
