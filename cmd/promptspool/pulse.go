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

// pulse is whether a server's database answers.
type pulse struct {
	away    atomic.Pointer[error] // why it does not; nil while it does
	metrics *metrics.Metrics
	logger  *slog.Logger
}

// tell notes whether the database answers, and logs when that changes.
func (p *pulse) tell(err error) {
	if err == nil {
		p.metrics.ArchiveUp.Set(1)
		if p.away.Swap(nil) != nil {
			p.logger.Info("the database is back")
		}
		return
	}
	p.metrics.ArchiveUp.Set(0)
	if p.away.Swap(&err) == nil {
		p.logger.Warn("the database does not answer; writes get 503, and the sidecars keep them", "error", err)
	}
}

// err is why the server cannot take calls, nil if it can.
func (p *pulse) err() error {
	if err := p.away.Load(); err != nil {
		return errors.New(strings.TrimSuffix(wire.AsError(*err).Message, "."))
	}
	return nil
}

// text is err for a status.
func (p *pulse) text() string {
	if err := p.err(); err != nil {
		return err.Error()
	}
	return ""
}

// watch follows a database until ctx ends; nil is one in this process.
func (p *pulse) watch(db remoteDatabase) func(context.Context) error {
	return func(ctx context.Context) error {
		p.tell(nil)
		if db == nil {
			<-ctx.Done()
			return nil
		}
		return db.Pulse(ctx, func(err error) {
			p.tell(err)
			used, most := db.Connections()
			p.metrics.ArchiveConns.Set(float64(used))
			p.metrics.ArchiveConnsMax.Set(float64(most))
		})
	}
}
