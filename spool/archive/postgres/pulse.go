package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	pulseEvery    = 2 * time.Second
	pulsePatience = 2 * time.Second
)

// Pulse tells every two seconds whether the database answers, until ctx ends: nil, or why not, as a wire error. It has a connection of its own,
// so that a server all of whose connections are busy does not take the database for dead. It returns nil.
func (db *DB) Pulse(ctx context.Context, told func(error)) error {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	}()
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	for {
		err := db.beat(ctx, &conn)
		if ctx.Err() != nil {
			return nil
		}
		told(err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// beat asks the database for a sign of life, on a connection that it makes if there is none. That there is none left for it says that others
// are being served.
func (db *DB) beat(ctx context.Context, conn **pgx.Conn) (err error) {
	patient, cancel := context.WithTimeout(ctx, pulsePatience)
	defer cancel()
	if *conn == nil {
		if *conn, err = pgx.ConnectConfig(patient, db.pool.Config().ConnConfig); err != nil {
			*conn = nil
			if sqlState(err) == "53300" { // too_many_connections
				return nil
			}
			return failure(ctx, err)
		}
	}
	if err := (*conn).Ping(patient); err != nil {
		_ = (*conn).Close(context.WithoutCancel(ctx))
		*conn = nil
		return failure(ctx, err)
	}
	return nil
}
