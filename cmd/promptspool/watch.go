package main

import (
	"context"
	"log/slog"
	"time"

	"promptspool/api"
	"promptspool/api/client"
	"promptspool/metrics"
	"promptspool/registry"
	"promptspool/spool/disk"
)

// watchEvery is how often metrics are set that nothing sets when it happens.
const watchEvery = 15 * time.Second

// every looks now, and then again and again after a time until ctx ends.
func every(between time.Duration, look func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(between)
		defer tick.Stop()
		for {
			look(ctx)
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// watchDisk keeps the metrics of what is free on the disk of the data folder, and of what must be, up to date. A nil
// freeMin stands for 0.
func watchDisk(data string, m *metrics.Metrics, freeMin func() int64) func(context.Context) error {
	return every(watchEvery, func(context.Context) {
		if freeMin != nil {
			m.DataFreeMin.Set(float64(freeMin()))
		}
		if space, err := disk.SpaceAt(data); err == nil {
			m.DataFree.Set(float64(space.Free))
		}
	})
}

// watchTemplates keeps the metric of how long the server has been silent about templates up to date.
func watchTemplates(cache *registry.Cache, m *metrics.Metrics) func(context.Context) error {
	return every(watchEvery, func(context.Context) { m.TemplateAgeSeconds.Set(cache.Age().Seconds()) })
}

const (
	skewMax   = 5 * time.Second // what the server allows before it orders writes by their arrival
	skewEvery = 5 * time.Second
)

// serverTime returns a clock that shows the server's time, or the sidecar's own as long as the server has told none.
func serverTime(clock *api.Clock, upstream *client.Client) func() time.Time {
	return func() time.Time {
		ahead, _, _ := upstream.Skew()
		return clock.Now().Add(-ahead)
	}
}

// watchSkew returns what keeps the metric of how far the sidecar's clock is from the server's up to date, and logs when
// the clocks disagree, until its ctx ends.
func watchSkew(upstream *client.Client, m *metrics.Metrics, logger *slog.Logger) func(context.Context) error {
	wrong := false
	return every(skewEvery, func(context.Context) {
		ahead, uncertain, known := upstream.Skew()
		if !known {
			return
		}
		m.ClockSkew.Set(ahead.Seconds())

		// Between the two bounds the last verdict stays.
		switch {
		case !wrong && ahead.Abs()-uncertain > skewMax:
			wrong = true
			logger.Warn("this machine's clock and the server's differ; set them right. "+
				"Until then the server orders what comes too early by its arrival",
				"ahead", ahead.Round(time.Millisecond).String())
		case wrong && ahead.Abs() < skewMax:
			wrong = false
			logger.Info("this machine's clock and the server's agree again")
		}
	})
}

// watchProjects keeps the names of projects in the metrics of usage up to date.
func watchProjects(db database, usage *metrics.Usage) func(context.Context) error {
	return every(watchEvery, func(ctx context.Context) {
		if usage == nil {
			return
		}
		// While the database is away, the names stay.
		if projects, err := db.Projects(ctx); err == nil {
			for _, p := range projects {
				usage.Name(p.ID, p.Name)
			}
		}
	})
}

// watchArchive keeps the metrics of the database up to date until ctx ends.
func watchArchive(at opened, m *metrics.Metrics) func(context.Context) error {
	db := at.db
	return every(watchEvery, func(ctx context.Context) {
		if at.damage != nil {
			damage := at.damage()
			m.ArchiveQuarantined.Set(float64(damage.Quarantined))
			m.ArchiveUnreadable.Set(float64(damage.UnreadableBytes))
		}

		if size, err := db.Size(ctx); err == nil {
			m.ArchiveRecords.Set(float64(size.Records))
			m.ArchiveDiskBytes.Set(float64(size.DiskBytes))
			m.ArchiveTombstones.Set(float64(size.Tombstones))
			m.ArchiveUnpackedRows.Set(float64(size.Unpacked))
			m.OrphanRequests.Set(float64(size.Orphans.Requests))
			m.OrphanEvents.Set(float64(size.Orphans.Events))
		}

		if at.remote != nil {
			if away, err := at.remote.NodesAway(ctx); err == nil {
				m.ArchiveNodesAway.Set(float64(len(away)))
			}
		}

		// The next look tries again.
		_ = db.NotifyFleet(ctx)
		if known, alive, err := db.FleetOfAll(ctx); err == nil {
			m.FleetSidecars.WithLabelValues("alive").Set(float64(alive))
			m.FleetSidecars.WithLabelValues("silent").Set(float64(known - alive))
		}
	})
}
