package badgerdb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
)

const (
	fleetMax  = 10_000              // sidecars of an account
	fleetKept = 30 * 24 * time.Hour // for one that is not heard any more
)

// Beat notes what a sidecar tells of itself, durably. A new one makes room for itself among those that were not heard for long;
// beyond fleetMax that are alive it is CodeTooMany.
func (db *DB) Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error {
	k, err := keysOf(id.Account)
	if err != nil {
		return err
	}
	sidecar, ok := parseUUID(h.ID)
	if !ok {
		return badID(h.ID)
	}
	now := db.now().UTC()
	return db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		known, err := loadBytes(txn, k.sidecar(sidecar))
		if err != nil {
			return nil, err
		}
		var writes []write
		if known == nil {
			if writes, err = db.makeRoom(ctx, txn, k, now); err != nil {
				return nil, err
			}
		}
		value, err := encode(wire.FleetSidecar{Heartbeat: h, LastSeen: now})
		return append(writes, write{k.sidecar(sidecar), value}), err
	})
}

// makeRoom removes who was not heard for fleetKept, and if that is not enough, who was not heard the longest.
func (db *DB) makeRoom(ctx context.Context, txn *badger.Txn, k keys, now time.Time) ([]write, error) {
	var writes []write
	var all []wire.FleetSidecar
	forget := func(s wire.FleetSidecar) {
		if id, ok := parseUUID(s.ID); ok {
			writes = append(writes, write{key: k.sidecar(id)})
		}
	}
	err := db.sidecars(ctx, txn, k, func(s wire.FleetSidecar) {
		if now.Sub(s.LastSeen) > fleetKept {
			forget(s)
		} else {
			all = append(all, s)
		}
	})
	if err != nil || len(all) < fleetMax {
		return writes, err
	}
	oldest := slices.MinFunc(all, func(a, b wire.FleetSidecar) int { return a.LastSeen.Compare(b.LastSeen) })
	if now.Sub(oldest.LastSeen) < wire.AliveFor {
		return nil, wire.Errorf(wire.CodeTooMany, "This account has %d sidecars already; no more are listed.", fleetMax)
	}
	forget(oldest)
	return writes, nil
}

// Fleet lists the account's sidecars, by name and id.
func (db *DB) Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error) {
	fleet := wire.Fleet{Success: true, Items: []wire.FleetSidecar{}}
	k, err := keysOf(id.Account)
	if err != nil {
		return fleet, err
	}
	now := db.now()
	err = db.view(func(txn *badger.Txn) error {
		return db.sidecars(ctx, txn, k, func(s wire.FleetSidecar) {
			silent := now.Sub(s.LastSeen)
			s.Alive = silent <= wire.AliveFor
			if silent <= fleetKept {
				fleet.Items = append(fleet.Items, s)
			}
		})
	})
	slices.SortFunc(fleet.Items, func(a, b wire.FleetSidecar) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return fleet, err
}

// FleetOfAll counts the sidecars of all accounts, and those that are alive. One that serves several accounts counts once for each.
func (db *DB) FleetOfAll(ctx context.Context) (known, alive int, err error) {
	now := db.now()
	err = db.view(func(txn *badger.Txn) error {
		return db.eachAccount(ctx, txn, func(k keys) error {
			return db.sidecars(ctx, txn, k, func(s wire.FleetSidecar) {
				known++
				if now.Sub(s.LastSeen) <= wire.AliveFor {
					alive++
				}
			})
		})
	})
	return known, alive, err
}

// sidecars gives fn each row of the account's fleet.
func (db *DB) sidecars(ctx context.Context, txn *badger.Txn, k keys, fn func(wire.FleetSidecar)) error {
	return db.each(ctx, txn, k.table(tableSidecar), nil, func(key, value []byte) (bool, error) {
		var s wire.FleetSidecar
		err := decode(key, value, &s)
		if err == nil {
			fn(s)
		}
		return true, err
	})
}
