package postgres

import (
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Bounds of a group, which shares one transaction: they limit memory, and how long its first
// batch waits for the others. A single batch may be larger.
const (
	groupBytesMax  = 8 << 20 // of bodies
	groupEventsMax = 2000
)

// lanes is how many transactions of one server write records at the same time.
const lanes = 2

// commitTimeout bounds a group with all its attempts. After it, its callers are told that the
// database is away.
const commitTimeout = 30 * time.Second

// newCommitter returns a committer that gathers batches into groups and has apply fold each
// group in one transaction. slots is added to the numbers of its lanes, so that those of two
// committers have slots of their own in account_weeks.
func newCommitter(slots int, apply applyFunc) *archive.Committer[application] {
	commit := func(ctx context.Context, lane int, group []*batch) {
		ctx, cancel := context.WithTimeout(ctx, commitTimeout)
		defer cancel()

		lane += slots
		answer(ctx, lane, group, apply(ctx, lane, group), apply)
	}

	return archive.NewCommitter(lanes, groupBytesMax, groupEventsMax, commit)
}

// applyFunc folds the batches of a group in one transaction.
type applyFunc func(ctx context.Context, lane int, group []*batch) error

// answer answers each batch of a group that has no answer yet. err is that of the whole group.
func answer(ctx context.Context, lane int, group []*batch, err error, apply applyFunc) {
	// One batch that can never be written must not fail the others, so each gets a
	// transaction of its own. Not while the database is away: they would all fail.
	apart := err != nil && len(group) > 1 && !wire.IsCode(err, wire.CodeUnavailable)
	for _, b := range group {
		if apart {
			b.Finish(apply(ctx, lane, []*batch{b}))
		} else {
			b.Finish(err)
		}
	}
}
