package badgerdb

import (
	"context"
	"sort"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive"
)

// Beat stores a sidecar's heartbeat, durably. A new sidecar takes the place of one not
// heard from for long. If archive.FleetMax are alive, it fails with CodeTooMany.
func (db *DB) Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error {
	k, err := keysOf(id.Account)
	if err != nil {
		return err
	}
	sidecar, ok := parseUUID(h.ID)
	if !ok {
		return archive.BadID(h.ID)
	}

	now := db.now().UTC()
	return db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		known, err := loadBytes(txn, k.sidecar(sidecar))
		if err != nil {
			return nil, err
		}

		// A known sidecar is overwritten, and needs no room.
		var writes []write
		if known == nil {
			if writes, err = db.makeRoom(ctx, txn, k, now); err != nil {
				return nil, err
			}
		}

		value, err := jsonscan.Marshal(wire.FleetSidecar{Heartbeat: h, LastSeen: now})
		return append(writes, write{k.sidecar(sidecar), value}), err
	})
}

// fleet is what the database remembers of an account's sidecars, so that not all have to
// be read for each new one.
type fleet struct {
	known     int           // about how many there are
	counted   time.Time     // when all were read
	silent    []silentSince // of a full fleet, those silent for longest when all were read
	fullUntil time.Time     // when reading them all again may find a silent one
}

// silentSince is a sidecar, and when it was last heard from.
type silentSince struct {
	id       uuid
	lastSeen time.Time
}

// When all sidecars of an account are read again, and how many silent ones are
// remembered.
const (
	fleetCountedFor = time.Hour
	fleetFullFor    = time.Second
	fleetSilentMax  = 1000
)

// makeRoom makes room for a new sidecar. Now and then it deletes sidecars not heard from
// for archive.FleetKept, and from a full fleet the one that has been silent for longest.
func (db *DB) makeRoom(ctx context.Context, txn *badger.Txn, k keys, now time.Time) (writes []write, err error) {
	// All of them are read again only if that may change the answer.
	f := db.fleets[k]
	exhausted := f != nil && f.known >= archive.FleetMax && len(f.silent) == 0 && !now.Before(f.fullUntil)
	if f == nil || now.Sub(f.counted) > fleetCountedFor || exhausted {
		if f, writes, err = db.countFleet(ctx, txn, k, now); err != nil {
			return nil, err
		}
		db.fleets[k] = f
	}

	if f.known < archive.FleetMax {
		f.known++
		return writes, nil
	}

	for len(f.silent) > 0 {
		oldest := f.silent[0]
		f.silent = f.silent[1:]

		var s wire.FleetSidecar
		found, err := load(txn, k.sidecar(oldest.id), &s)
		if err != nil {
			return nil, err
		}

		// It may have been heard from since all were read.
		if found && s.LastSeen.Equal(oldest.lastSeen) {
			return append(writes, write{key: k.sidecar(oldest.id)}), nil
		}
	}

	return nil, archive.ErrFleetFull()
}

// countFleet reads the account's sidecars. It returns deletions of those not heard from
// for archive.FleetKept.
func (db *DB) countFleet(ctx context.Context, txn *badger.Txn, k keys, now time.Time) (*fleet, []write, error) {
	var writes []write
	var all []silentSince
	err := db.sidecars(ctx, txn, k, func(s wire.FleetSidecar) {
		id, ok := parseUUID(s.ID)
		switch {
		case !ok:
		case now.Sub(s.LastSeen) > archive.FleetKept:
			writes = append(writes, write{key: k.sidecar(id)})
		default:
			all = append(all, silentSince{id, s.LastSeen})
		}
	})
	f := &fleet{known: len(all), counted: now}
	if err != nil || len(all) < archive.FleetMax {
		return f, writes, err
	}

	// The full fleet: remembered are those that may have to give way first.
	sort.Slice(all, func(i, j int) bool { return all[i].lastSeen.Before(all[j].lastSeen) })
	for _, s := range all[:fleetSilentMax] {
		if now.Sub(s.lastSeen) >= wire.AliveFor {
			f.silent = append(f.silent, s)
		}
	}

	// Until the first of them can have been silent for long enough, there is none to
	// find.
	f.fullUntil = now.Add(fleetFullFor)
	if free := all[0].lastSeen.Add(wire.AliveFor); free.After(f.fullUntil) {
		f.fullUntil = free
	}

	return f, writes, nil
}

// Fleet lists the account's sidecars, by name and id.
func (db *DB) Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error) {
	items := []wire.FleetSidecar{}
	k, err := keysOf(id.Account)
	if err == nil {
		err = db.view(func(txn *badger.Txn) error {
			return db.sidecars(ctx, txn, k, func(s wire.FleetSidecar) {
				items = append(items, s)
			})
		})
	}

	return archive.NewFleet(items, db.now()), err
}

// FleetOfAll counts the sidecars of all accounts, and those alive. A sidecar that serves
// several accounts counts once for each.
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

// sidecars calls fn for each sidecar of the account.
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
