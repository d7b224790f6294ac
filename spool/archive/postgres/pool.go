package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// search=prefer-standby in the connection string sends searches, statistics and exports to a
// standby. Their answers are as old as its data.
const (
	searchParameter = "search"
	searchStandby   = "prefer-standby"
)

// searchLifetime is how long a connection for searches is used. New ones find a standby that
// was away.
const searchLifetime = 5 * time.Minute

var errSearch = errors.New("the connection string of the database: search must be " + searchStandby +
	" (search a standby), or left out to search the primary")

// newPools opens the pool for everything that must be current, and the pool for searches.
// They are the same unless the connection string asks for a standby.
func newPools(ctx context.Context, config *pgxpool.Config) (pool, searches *pgxpool.Pool, err error) {
	settings := config.ConnConfig.RuntimeParams
	wanted, standby := settings[searchParameter]
	delete(settings, searchParameter)
	if standby && wanted != searchStandby {
		return nil, nil, errSearch
	}

	if pool, err = pgxpool.NewWithConfig(ctx, config); err != nil || !standby {
		return pool, pool, err
	}
	// If no standby answers, pgx falls back to the primary.
	config = config.Copy()
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPreferStandby
	config.MaxConnLifetime = searchLifetime
	if searches, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("for searches: %w", err)
	}

	return pool, searches, nil
}

// closePools waits for running calls and closes the connections.
func (db *DB) closePools() {
	for _, p := range db.pools() {
		p.Close()
	}
}

// pools returns the pools, without duplicates.
func (db *DB) pools() []*pgxpool.Pool {
	if db.searches == db.pool {
		return []*pgxpool.Pool{db.pool}
	}
	return []*pgxpool.Pool{db.searches, db.pool}
}

// Connections returns how many of this server's connections are in use, and the limit.
func (db *DB) Connections() (used, most int) {
	for _, p := range db.pools() {
		s := p.Stat()
		used += int(s.AcquiredConns())
		most += int(s.MaxConns())
	}

	return used, most
}
