package archive

import (
	"context"
	"time"

	"promptspool/api/wire"
)

// Retention bounds what a Store keeps of each account. Zero values keep everything.
type Retention struct {
	Age   time.Duration // records whose order time is older are deleted, and so are orphans
	Bytes int64         // of bodies as they were sent; beyond it the oldest records are deleted
}

// Size is how much a Store holds.
type Size struct {
	Records   uint64 // of all accounts
	Bytes     uint64 // of their events' bodies, as they were sent
	DiskBytes int64  // blocks that the files occupy
	Orphans   Orphans

	// Tombstones counts deleted records and metadata values that are rejected for good. A
	// deletion counts once it is durable.
	Tombstones int64

	// Unpacked counts the rows written since the last packing. Those from before a start
	// do not count.
	Unpacked int
}

// UnseenMax bounds an account's tombstones for records that it did not have when they
// were deleted. Made-up ids would fill the disk. The number of written records bounds the
// other tombstones.
const UnseenMax = 100_000

// errUnseen rejects the deletion of an unknown record when no more of these can be
// remembered. Earlier deletions are kept, so what was deleted stays deleted.
func errUnseen() error {
	return wire.Errorf(wire.CodeTooLarge, "Nothing was deleted: no request with this id is stored, and "+
		"this project has already deleted %d ids before their requests arrived, the most that are "+
		"remembered. Stored requests can still be deleted. To delete requests that arrive later, delete "+
		"by a metadata value.", UnseenMax)
}

// oldestMax is how many of an account's oldest records are looked up together, which takes a
// look at all rows of some time.
const oldestMax = 10_000

// Retain deletes what is beyond the retention, without tombstones, the oldest first. It
// returns how many records it deleted. By age, a Store may keep a record up to a week longer.
func Retain(ctx context.Context, s Store, r Retention, now time.Time) (dropped int64, err error) {
	accounts, err := s.Accounts(ctx)
	if err != nil || r == (Retention{}) {
		return 0, err
	}
	each := func(fn func(*deletion) error) {
		for _, account := range accounts {
			if err == nil {
				w := deletion{store: s, account: account}
				err = fn(&w)
				dropped += w.sum.Records
			}
		}
	}

	// By age first: what is gone then no longer counts against the bytes.
	if r.Age > 0 {
		cutoff := now.Add(-r.Age)
		each(func(w *deletion) error { return w.waited(ctx, cutoff) })
		if err != nil {
			return dropped, err
		}
		var n int64
		n, cutoff, err = s.DropBefore(ctx, cutoff)
		dropped += n
		each(func(w *deletion) error { return w.older(ctx, cutoff) })
	}
	if r.Bytes > 0 {
		each(func(w *deletion) error { return w.beyond(ctx, r.Bytes) })
	}

	return dropped, err
}

// waited deletes the account's orphans whose last event is from before a moment.
func (w *deletion) waited(ctx context.Context, cutoff time.Time) error {
	has, err := w.store.Counts(ctx, w.account)
	if err != nil || has.Orphans.Requests == 0 {
		return err
	}
	w.which = func(s *State) bool { return s.History[len(s.History)-1].At.Before(cutoff) }

	return w.offList(ctx, Orphaned)
}

// older deletes the account's records and spans from before a moment.
func (w *deletion) older(ctx context.Context, cutoff time.Time) error {
	for {
		ids, err := w.store.Oldest(ctx, w.account, cutoff, oldestMax)
		if err == nil {
			err = w.records(ctx, ids)
		}
		if err != nil || len(ids) < oldestMax {
			return err
		}
	}
}

// beyond deletes the account's oldest records until it holds at most so many bytes.
func (w *deletion) beyond(ctx context.Context, most int64) error {
	var oldest []string
	for {
		// Asked again each time: others write and delete meanwhile.
		has, err := w.store.Counts(ctx, w.account)
		records := has.Records + has.Spans
		if err != nil || has.Bytes <= most || records == 0 {
			return err
		}

		// As many records as the excess has at the account's mean size: a step deletes at most
		// a few too many or too few.
		excess := int(min(max((has.Bytes-most)*records/has.Bytes, 1), oldestMax))
		if len(oldest) == 0 {
			oldest, err = w.store.Oldest(ctx, w.account, time.Time{}, excess)
		}
		if err != nil || len(oldest) == 0 {
			return err
		}

		step := oldest[:min(excess, ChangeStep, len(oldest))]
		oldest = oldest[len(step):]
		if err := w.records(ctx, step); err != nil {
			return err
		}
	}
}
