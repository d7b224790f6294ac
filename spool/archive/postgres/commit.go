package postgres

import (
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Bounds of what shares one transaction: memory, and how long the first of it waits. One batch alone may be larger.
const (
	groupBytesMax  = 8 << 20 // of bodies
	groupEventsMax = 2000
)

// lanes is how many transactions of one server write records at the same time.
const lanes = 2

// commitTimeout is how long a group may take, all tries together, before its callers hear that the database is away.
const commitTimeout = 30 * time.Second

// newCommitter makes a committer of batches, which apply folds in one transaction.
func newCommitter(apply func(ctx context.Context, lane int, group []*batch) error) *archive.Committer[application] {
	return archive.NewCommitter(lanes, groupBytesMax, groupEventsMax, func(ctx context.Context, lane int, group []*batch) {
		ctx, cancel := context.WithTimeout(ctx, commitTimeout)
		defer cancel()

		err := apply(ctx, lane, group)
		for _, b := range group {
			if err != nil && len(group) > 1 && !wire.IsCode(err, wire.CodeUnavailable) {
				b.Finish(apply(ctx, lane, []*batch{b})) // so that one that can never be written harms no other
			} else {
				b.Finish(err)
			}
		}
	})
}
