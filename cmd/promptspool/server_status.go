package main

import (
	"context"
	"time"

	"promptspool/api"
	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// serverStatus is what /statusz and the control socket of a server return.
type serverStatus struct {
	Role      string          `json:"role"`
	Version   string          `json:"version"`
	Name      string          `json:"name"`
	Archive   string          `json:"archive"`            // badger, or a postgres:// without its password
	Away      string          `json:"archive_away"`       // why the database does not answer; "" while it does
	NodesAway []string        `json:"archive_nodes_away"` // of several; what is on them is away
	StartedAt time.Time       `json:"started_at"`
	Records   uint64          `json:"records"`    // of all accounts
	DiskBytes int64           `json:"disk_bytes"` // blocks of the archive's files
	Orphans   archive.Orphans `json:"orphans"`    // of all accounts
	Sidecars  int             `json:"sidecars"`   // of all accounts that were heard within a month
	Alive     int             `json:"sidecars_alive"`

	DroppedToday []wire.Drop `json:"dropped_today"` // of all accounts, by this server
}

// fleetAndDrops is an account's fleet, with what this server itself dropped.
type fleetAndDrops struct {
	database
	drops *api.DropCounter
}

// Fleet lists the account's sidecars.
func (f fleetAndDrops) Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error) {
	fleet, err := f.database.Fleet(ctx, id)
	fleet.DroppedToday = f.drops.Of(id.Account)

	return fleet, err
}

// statusPatience is how long a status waits for the database.
const statusPatience = 5 * time.Second

// statusOfServer reads the database. Values that cannot be read count as none: the reads
// that users make log it.
func statusOfServer(name string, started time.Time, at opened, health *dbHealth, drops *api.DropCounter) serverStatus {
	s := serverStatus{
		Role:      "server",
		Version:   version,
		Name:      name,
		StartedAt: started,
		Archive:   at.name,
		NodesAway: []string{},

		DroppedToday: drops.Of(""),
	}
	if err := health.err(); err != nil {
		s.Away = err.Error()
		return s
	}

	ctx, cancel := context.WithTimeout(context.Background(), statusPatience)
	defer cancel()
	s.Sidecars, s.Alive, _ = at.db.FleetOfAll(ctx)
	if at.remote != nil {
		if away, _ := at.remote.NodesAway(ctx); len(away) > 0 {
			// The statements below ask all nodes, and would wait in vain for the rest of
			// ctx.
			s.NodesAway = away
			return s
		}
	}

	size, _ := at.db.Size(ctx)
	s.Records, s.DiskBytes, s.Orphans = size.Records, size.DiskBytes, size.Orphans

	return s
}
