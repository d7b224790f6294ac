package connection

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	healthInterval = 2 * time.Second
	healthPatience = 2 * time.Second
)

// WatchHealth calls report every two seconds with whether the database answers, until ctx ends.
//
// report gets nil, or a wire error that says why not. WatchHealth uses its own
// connection: if it took one from the pool, a busy server would take the database for
// dead. It always returns nil.
func (p *Pool) WatchHealth(ctx context.Context, report func(error)) error {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	}()

	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		err := p.ping(ctx, &conn)
		// The end of ctx fails the ping, too, but says nothing about the database.
		if ctx.Err() != nil {
			return nil
		}
		report(err)

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ping asks the database for an answer on *conn, which it opens first if it is nil.
func (p *Pool) ping(ctx context.Context, conn **pgx.Conn) (err error) {
	patient, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()

	if *conn == nil {
		if *conn, err = p.Connect(patient); err != nil {
			*conn = nil
			// too_many_connections: the database is alive and serves others.
			if SQLState(err) == "53300" {
				return nil
			}
			return Failure(ctx, err)
		}
	}

	// A broken connection is not mended: the next ping opens another.
	if err := (*conn).Ping(patient); err != nil {
		_ = (*conn).Close(context.WithoutCancel(ctx))
		*conn = nil
		return Failure(ctx, err)
	}

	return nil
}
