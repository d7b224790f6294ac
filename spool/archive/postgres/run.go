package postgres

import (
	"context"
	"time"
)

// tidyEvery is how often Run tidies.
const tidyEvery = 10 * time.Minute

// Run makes the partitions of the weeks to come, now and then, until ctx ends. It returns nil.
func (db *DB) Run(ctx context.Context) error {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		if err := db.makeAhead(ctx); err != nil && ctx.Err() == nil {
			db.logger.Error("the partitions of the weeks to come could not be made; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
