package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/connection"
)

const insertSidecar = `
	INSERT INTO sidecars (account_id, id, heartbeat, last_seen) VALUES ($1, $2::uuid, $3::json, $4)
	ON CONFLICT (account_id, id) DO UPDATE SET heartbeat = EXCLUDED.heartbeat, last_seen = EXCLUDED.last_seen`

// Beat stores a sidecar's heartbeat durably.
//
// A new sidecar takes the place of those not heard from for long. If an account has
// archive.FleetMax that are alive, Beat returns CodeTooMany.
func (db *DB) Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error {
	if _, err := wire.ParseID(h.ID); err != nil {
		return wire.Errorf(wire.CodeInternal, "%.40q is not an id; the API should not have passed it on.", h.ID)
	}
	heartbeat, err := encode(h)
	if err != nil {
		return err
	}

	// Nearly always the sidecar is known, and one statement will do.
	now := db.now().UTC()
	known := false
	err = db.pool.WithConn(ctx, func(conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, `
			UPDATE sidecars SET heartbeat = $3::json, last_seen = $4
			WHERE account_id = $1 AND id = $2::uuid`, id.Account, h.ID, heartbeat, now)
		known = tag.RowsAffected() > 0
		return err
	})
	if known || err != nil {
		return err
	}

	// Two servers may count at the same time and each add one: the bound is passed by a few.
	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		if err := makeRoom(ctx, tx, id.Account, now); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertSidecar, id.Account, h.ID, heartbeat, now)
		return err
	})
}

// makeRoom removes sidecars not heard from for archive.FleetKept and, if that is not enough,
// the one not heard from for the longest time.
func makeRoom(ctx context.Context, tx pgx.Tx, account string, now time.Time) error {
	// Only when a new one comes, which is seldom: nobody else has to clean up.
	if _, err := tx.Exec(ctx, `DELETE FROM sidecars WHERE account_id = $1 AND last_seen < $2`,
		account, now.Add(-archive.FleetKept)); err != nil {
		return err
	}

	var count int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM sidecars WHERE account_id = $1`, account).Scan(&count)
	if err != nil || count < archive.FleetMax {
		return err
	}

	var oldest string
	var seen time.Time
	if err := tx.QueryRow(ctx, `
		SELECT id::text, last_seen FROM sidecars WHERE account_id = $1
		ORDER BY last_seen, id LIMIT 1`, account).Scan(&oldest, &seen); err != nil {
		return err
	}
	// Even the most silent one is alive: then no place is free.
	if now.Sub(seen) < wire.AliveFor {
		return archive.ErrFleetFull()
	}
	_, err = tx.Exec(ctx, `DELETE FROM sidecars WHERE account_id = $1 AND id = $2::uuid`, account, oldest)

	return err
}

// Fleet returns the account's sidecars, by name and id.
func (db *DB) Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error) {
	now := db.now()
	items, err := connection.QueryRows(ctx, db.pool,
		func(s *wire.FleetSidecar) []any { return []any{&s.Heartbeat, &s.LastSeen} },
		`SELECT heartbeat, last_seen FROM sidecars WHERE account_id = $1 AND last_seen >= $2`,
		id.Account, now.Add(-archive.FleetKept))
	if err != nil {
		return wire.Fleet{}, err
	}

	return archive.NewFleet(items, now), nil
}

// FleetOfAll counts the sidecars of all accounts, and those alive. A sidecar that serves
// several accounts counts once for each.
func (db *DB) FleetOfAll(ctx context.Context) (known, alive int, err error) {
	err = db.pool.QueryRow(ctx, nil, []any{&known, &alive},
		`SELECT count(*), count(*) FILTER (WHERE last_seen >= $1) FROM sidecars`,
		db.now().Add(-wire.AliveFor))
	return known, alive, err
}
