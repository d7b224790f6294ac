package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"promptspool/api"
	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/disk"
	"promptspool/spool/queue"
)

// sidecarStatus is what /statusz and the control socket of a sidecar tell.
type sidecarStatus struct {
	Role      string    `json:"role"`
	ID        string    `json:"id"`
	Version   string    `json:"version"`
	Name      string    `json:"name"`
	StartedAt time.Time `json:"started_at"`
	Upstream  string    `json:"upstream"`
	Away      bool      `json:"away"`            // the last attempt to deliver found no server
	Waits     string    `json:"waits,omitempty"` // why events are not delivered
	// ClockAhead is by how many seconds this clock is ahead of the server's; null before the first answer.
	ClockAhead *float64     `json:"clock_ahead_seconds"`
	Spool      queue.Status `json:"spool"`

	DroppedToday []wire.Drop `json:"dropped_today"`
}

// heartbeat is what the server is told of it.
func (s sidecarStatus) heartbeat() wire.Heartbeat {
	h := wire.Heartbeat{
		ID: s.ID, Name: s.Name, Version: s.Version, StartedAt: s.StartedAt,
		BacklogEvents: int64(s.Spool.Events), BacklogBytes: s.Spool.Bytes, HeldEvents: int64(s.Spool.Held),
		DeadLetters: int64(s.Spool.Dead), Dropped: int64(s.Spool.Dropped), LostEvents: int64(s.Spool.Gaps),
		ClockAhead: s.ClockAhead, DroppedToday: s.DroppedToday,
	}
	if !s.Spool.Oldest.IsZero() {
		h.OldestSeconds = max(0, time.Since(s.Spool.Oldest).Seconds())
	}
	return h
}

// idOf reads the sidecar's id from its data folder, where it is made once. One that cannot be read is made
// again: it only names a line of the fleet.
func idOf(data string) (string, error) {
	path := filepath.Join(data, "id")
	text, err := os.ReadFile(path)
	if id, bad := wire.ParseID(strings.TrimSpace(string(text))); err == nil && bad == nil {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) && !disk.IsUnreadable(err) {
		return "", fmt.Errorf("the sidecar's id: %w", err)
	}

	id := wire.NewID()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("the sidecar's id: %w", err)
	}
	return id, nil
}

// clockAhead is by how many seconds the clock is ahead of the server's; nil before its first answer.
func clockAhead(upstream *client.Client) *float64 {
	ahead, _, known := upstream.Skew()
	if !known {
		return nil
	}
	seconds := ahead.Seconds()
	return &seconds
}

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
