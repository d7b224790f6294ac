package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"promptspool/spool/queue/generation"
)

// Bounds of one read by Queue.Waiting; a larger event comes alone.
const (
	exportEventsMax = 1000
	exportBytesMax  = 4 << 20
)

// Waiting yields, in order, the events that wait now and are whole.
//
// Some 4 MiB of them are in memory at a time. Events that are acknowledged meanwhile may
// be left out. Unreadable ones are counted and logged, as by Read. The sequence ends
// after an error. Waiting takes turns with calls that read and acknowledge.
func (q *Queue) Waiting(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		// Events appended from here on are left out, or a busy spool would never come to
		// an end.
		newest, _ := q.Newest()
		for from := q.Frontier(); from <= newest; from = max(from, q.Frontier()) {
			r := reading{
				spool:     q,
				from:      from,
				end:       newest + 1,
				eventsMax: exportEventsMax,
				bytesMax:  exportBytesMax,
			}
			if err := r.run(ctx); err != nil {
				yield(Entry{}, err)
				return
			}

			if len(r.entries) == 0 {
				return
			}
			for _, e := range r.entries {
				if !yield(e, nil) {
					return
				}
			}
			from = r.entries[len(r.entries)-1].Seq + 1
		}
	}
}

// errEnough ends an inspection when the caller's loop ends.
var errEnough = errors.New("no more is wanted")

// Waiting yields, in order, the events that wait and are whole, with one in memory at a
// time.
//
// Damaged events are left out, see Check. The sequence ends after an error.
func (f *Folder) Waiting() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		in := inspection{folder: f, visit: func(ev generation.Evidence, from, end uint64) error {
			return yieldEvents(ev, from, end, yield)
		}}
		if err := in.run(context.Background()); err != nil && !errors.Is(err, errEnough) {
			yield(Entry{}, err)
		}
	}
}

// yieldEvents reads the whole events from <= sequence < end from the raw files. It
// returns errEnough when yield returns false.
func yieldEvents(ev generation.Evidence, from, end uint64, yield func(Entry, error) bool) error {
	for _, seq := range ev.Sequences() {
		if seq < from || seq >= end {
			continue
		}

		e, err := ev.Read(seq)
		if err != nil {
			return fmt.Errorf("spool: event %d in %s: %w", seq, ev.EventFile(seq), err)
		}
		if !yield(e, nil) {
			return errEnough
		}
	}
	return nil
}
