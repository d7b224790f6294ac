package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"

	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
	"promptspool/spool/database/postgres"
)

// inTurn is a database at several servers, which take the changes in turn.
type inTurn struct {
	keyed.Store // at the first
	servers     []keyed.Store
	changes     atomic.Int64
}

func (s *inTurn) Change(ctx context.Context, account string, again bool, fn func(*keyed.Tx) error) error {
	server := s.servers[s.changes.Add(1)%int64(len(s.servers))]
	return server.Change(ctx, account, again, fn)
}

// What only accounts.Store makes of these values has its suites there.
func TestSmallValues(t *testing.T) {
	keyedtest.Run(t, func(t *testing.T) keyed.Store {
		dsn := postgres.Reused(t)
		servers := []keyed.Store{open(t, dsn).Small(), open(t, dsn).Small(), open(t, dsn).Small()}
		return &inTurn{Store: servers[0], servers: servers}
	})
}
