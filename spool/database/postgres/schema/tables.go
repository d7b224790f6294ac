package schema

import (
	"log/slog"
	"sync"
	"time"

	"promptspool/spool/database/postgres/connection"
)

// Tables are the tables of a database. It is safe for concurrent use, also by any number of
// servers at the same time.
type Tables struct {
	pool   *connection.Pool
	logger *slog.Logger
	now    func() time.Time

	mu    sync.Mutex
	known map[time.Time]bool // by Monday: which weeks have partitions; guarded by mu
}

// New returns the tables of a database, which Create creates.
func New(pool *connection.Pool, logger *slog.Logger, now func() time.Time) *Tables {
	return &Tables{pool: pool, logger: logger, now: now}
}
