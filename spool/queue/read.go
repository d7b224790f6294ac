package queue

import (
	"context"
	"errors"

	"promptspool/spool/queue/generation"
)

// Read returns the events with Seq >= from, in order. It does not wait, and may return
// none. end is where the next reading begins; what is missing before it was lost.
//
// It returns at most eventsMax events with at most bytesMax bytes of data together, but
// always the first one, however large it is. Their data belongs to the caller.
//
// Every frame is verified. Events that Badger no longer returns are taken from the raw
// files of their generation. Those not whole there either are counted, logged and left
// out, so the sequences may have gaps. An event stays in the spool until Ack, and can be
// read any number of times.
//
// Errors: ctx.Err() when ctx ends, and ErrClosed after Close.
func (q *Queue) Read(
	ctx context.Context, from uint64, eventsMax, bytesMax int,
) (entries []Entry, end uint64, err error) {
	next := q.Next()
	if from >= next {
		return nil, from, nil
	}

	r := reading{
		spool:     q,
		from:      from,
		end:       next,
		eventsMax: max(eventsMax, 1),
		bytesMax:  bytesMax,
	}
	if err := r.run(ctx); err != nil {
		return r.entries, from, err
	}
	if n := len(r.entries); n > 0 {
		return r.entries, r.entries[n-1].Seq + 1, nil
	}

	return nil, next, nil
}

// Wait returns when an event with Seq >= from was appended, whole or lost by now.
//
// Errors: as of Read.
func (q *Queue) Wait(ctx context.Context, from uint64) error {
	for {
		q.mu.Lock()
		// Together, or an event in between would not wake us.
		grown, next := q.grown, q.next
		q.mu.Unlock()

		if from < next {
			return nil
		}

		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		case <-q.closed:
			return ErrClosed
		}
	}
}

// reading is one pass of Read over what is committed.
type reading struct {
	spool     *Queue
	from, end uint64 // from <= sequence < end
	eventsMax int
	bytesMax  int

	entries []Entry
	bytes   int64
}

// run reads generation by generation until enough was read.
func (r *reading) run(ctx context.Context) error {
	s := r.spool
	s.readMu.Lock()
	defer s.readMu.Unlock()

	for _, g := range s.generationsFrom(r.from) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if errors.Is(s.Ready(), ErrClosed) {
			return ErrClosed
		}

		full, entries, bytes := false, len(r.entries), r.bytes
		err := s.withOpen(g, func(open *generation.Reader) error {
			// A second try begins where the first one did, or events would be returned
			// twice.
			r.entries, r.bytes = r.entries[:entries], bytes
			return generation.Guard(s.path(g.name), func() (err error) {
				full, err = r.readGeneration(open, g)
				return err
			})
		})
		if err != nil || full {
			return err
		}
	}
	return nil
}

// readGeneration appends the generation's events to entries. It reports full when enough
// was read.
func (r *reading) readGeneration(open *generation.Reader, g *generationState) (full bool, err error) {
	it := open.Events()
	defer it.Close()

	next := max(r.from, g.first)
	it.Seek(next)
	for {
		k, ok := it.Next()
		if !ok || k.Seq >= r.end {
			break
		}

		// Sequences have no gaps, so a key that was skipped is missing from the store.
		if full, err := r.rescue(g, next, k.Seq, "its key is not in the store"); full || err != nil {
			return full, err
		}

		if !r.hasSpaceFor(int64(k.Bytes)) {
			return true, nil
		}

		// One event that Badger cannot return must not hold up the ones after it.
		data, err := it.Read(k)
		if err == nil {
			r.add(Entry{Seq: k.Seq, Key: k.Key, At: k.At, Data: data})
		} else if full, err := r.rescue(g, k.Seq, k.Seq+1, err.Error()); full || err != nil {
			return full, err
		}
		next = k.Seq + 1
	}

	// The same at the end of the generation.
	end := min(r.end, r.spool.lastSeq(g)+1)
	if full, err := r.rescue(g, next, end, "its key is not in the store"); full || err != nil {
		return full, err
	}
	return len(r.entries) >= r.eventsMax, nil
}

// hasSpaceFor reports whether one more event of this size may be returned.
func (r *reading) hasSpaceFor(bytes int64) bool {
	n := len(r.entries)
	return n == 0 || n < r.eventsMax && r.bytes+bytes <= int64(r.bytesMax)
}

func (r *reading) add(e Entry) {
	r.entries = append(r.entries, e)
	r.bytes += int64(len(e.Data))
}
