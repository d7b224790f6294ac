package main

import (
	"context"
	"time"

	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/badgerdb"
)

// serverStatus is what /statusz and the control socket of a server tell.
type serverStatus struct {
	Role      string          `json:"role"`
	Version   string          `json:"version"`
	Name      string          `json:"name"`
	StartedAt time.Time       `json:"started_at"`
	Orphans   archive.Orphans `json:"orphans"`  // of all accounts
	Sidecars  int             `json:"sidecars"` // of all accounts that were heard within a month
	Alive     int             `json:"sidecars_alive"`
}

// statusOfServer looks into the database. What cannot be read counts as none: the reads that users make log it.
func statusOfServer(name string, started time.Time, db *badgerdb.DB) serverStatus {
	s := serverStatus{Role: "server", Version: version, Name: name, StartedAt: started}
	s.Orphans, _ = db.OrphansOfAll(context.Background())
	s.Sidecars, s.Alive, _ = db.FleetOfAll(context.Background())
	return s
}

// watchEvery is how often a server counts what its metrics tell of its database.
const watchEvery = 15 * time.Second

// watchArchive keeps the metrics of the database up to date until ctx ends.
func watchArchive(db *badgerdb.DB, m *metrics.Metrics) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			if o, err := db.OrphansOfAll(ctx); err == nil {
				m.OrphanRequests.Set(float64(o.Requests))
				m.OrphanEvents.Set(float64(o.Events))
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}
