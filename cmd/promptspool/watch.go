package main

import (
	"context"
	"time"

	"promptspool/metrics"
	"promptspool/registry"
	"promptspool/spool/disk"
)

// watchEvery is how often metrics are set that nothing sets when it happens.
const watchEvery = 15 * time.Second

// every looks now, and then again and again until ctx ends.
func every(look func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(watchEvery)
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

// watchDisk tells how much is free on the disk of the data folder.
func watchDisk(data string, m *metrics.Metrics) func(context.Context) error {
	return every(func(context.Context) {
		if room, err := disk.RoomAt(data); err == nil {
			m.DataFree.Set(float64(room.Free))
		}
	})
}

// watchTemplates tells for how long the server has been silent about templates.
func watchTemplates(cache *registry.Cache, m *metrics.Metrics) func(context.Context) error {
	return every(func(context.Context) { m.TemplateAgeSeconds.Set(cache.Age().Seconds()) })
}
