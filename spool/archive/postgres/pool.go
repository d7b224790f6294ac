package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// In a connection string search=prefer-standby has a standby searched: pages, statistics and exports come from there, as old as it is.
const (
	searchParameter = "search"
	searchStandby   = "prefer-standby"
)

// searchLifetime is how long a connection for searches is used: so they come back to a standby that was away.
const searchLifetime = 5 * time.Minute

var errSearch = errors.New("the connection string of the database: search can only be " + searchStandby + ", which has a standby searched; leave it out to search where writes go")

// newPools makes the pool of all that is current, and that of searches: the same unless the connection string says otherwise.
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
	config = config.Copy()
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPreferStandby
	config.MaxConnLifetime = searchLifetime
	if searches, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("for searches: %w", err)
	}
	return pool, searches, nil
}

// closePools waits for the calls that run and ends the connections.
func (db *DB) closePools() {
	for _, p := range db.pools() {
		p.Close()
	}
}

// pools are all, each once.
func (db *DB) pools() []*pgxpool.Pool {
	if db.searches == db.pool {
		return []*pgxpool.Pool{db.pool}
	}
	return []*pgxpool.Pool{db.searches, db.pool}
}

// Connections are how many of this server's connections are in use at the moment, and how many there may be.
func (db *DB) Connections() (used, most int) {
	for _, p := range db.pools() {
		s := p.Stat()
		used, most = used+int(s.AcquiredConns()), most+int(s.MaxConns())
	}
	return used, most
}
