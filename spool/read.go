package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"

	badger "github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"promptspool/spool/frame"
	"promptspool/spool/rawlog"
)

// Read returns the events with Seq >= from, in order, and waits until there is at least
// one.
//
// It returns at most eventsMax events with at most bytesMax bytes of data together, but
// always the first one, however large it is. Their data belongs to the caller.
//
// Every frame is verified. What Badger no longer returns is taken from the raw files of
// its generation. What is not whole there either is counted, logged and left out, so the
// sequences may have gaps. An event stays in the spool until Ack, and can be read any
// number of times.
//
// Errors: ctx.Err() when ctx ends, and ErrClosed after Close.
func (s *Spool) Read(ctx context.Context, from uint64, eventsMax, bytesMax int) ([]Entry, error) {
	for {
		s.mu.Lock()
		grown, next := s.grown, s.next // together, or an event in between would not wake us
		s.mu.Unlock()

		if from < next {
			r := reading{
				spool:     s,
				from:      from,
				end:       next,
				eventsMax: max(eventsMax, 1),
				bytesMax:  bytesMax,
			}
			if err := r.run(ctx); err != nil || len(r.entries) > 0 {
				return r.entries, err
			}
			from = next // all of it was lost

			// What follows may never come, so what is lost must not wait for it.
			if err := s.Ack(s.Frontier() - 1); err != nil {
				return nil, err
			}
		}

		select {
		case <-grown:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.closed:
			return nil, ErrClosed
		}
	}
}

// reading is one pass of Read over what is committed.
type reading struct {
	spool     *Spool
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
		if s.isClosing() {
			return ErrClosed
		}

		full, entries, bytes := false, len(r.entries), r.bytes
		err := s.withOpen(g, func(db *badger.DB) error {
			// A second try begins where the first one did, or events would be returned
			// twice.
			r.entries, r.bytes = r.entries[:entries], bytes
			return unreadableOr(rawlog.Guard(s.path(g.name), func() (err error) {
				full, err = r.readGeneration(db, g)
				return err
			}))
		})
		if err != nil || full {
			return err
		}
	}
	return nil
}

// readGeneration appends the generation's events to entries. It reports full when enough
// was read.
func (r *reading) readGeneration(db *badger.DB, g *generation) (full bool, err error) {
	txn := db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()

	next := max(r.from, g.first)
	for it.Seek(frame.SeekKey(next)); it.Valid(); {
		k, ok := frame.DecodeEventKey(it.Item().Key())
		if !ok || k.Part != 0 {
			it.Next()
			continue
		}
		if k.Seq >= r.end {
			break
		}

		// Sequences have no gaps, so a key that was skipped is missing from the store.
		if full, err := r.rescue(g, next, k.Seq, "its key is not in the store"); full || err != nil {
			return full, err
		}

		if !r.hasRoomFor(int64(k.Bytes)) {
			return true, nil
		}

		// One event that Badger cannot return must not hold up the ones behind it. Only a
		// frame of a newer version ends the read: it is not damaged, and an older program
		// must not lose it.
		data, err := readEvent(it, k)
		if errors.Is(err, frame.ErrNewer) {
			return false, fmt.Errorf("spool: event %d: %w", k.Seq, err)
		}
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

// hasRoomFor reports whether one more event of this size may be returned.
func (r *reading) hasRoomFor(bytes int64) bool {
	n := len(r.entries)
	return n == 0 || n < r.eventsMax && r.bytes+bytes <= int64(r.bytesMax)
}

func (r *reading) add(e Entry) {
	r.entries = append(r.entries, e)
	r.bytes += int64(len(e.Data))
}

// readEvent assembles an event from its frames. The iterator must be at its first frame,
// and is left after its last one.
func readEvent(it *badger.Iterator, k frame.EventKey) ([]byte, error) {
	var data []byte
	var damage error
	parts := 0

	// Go on after damage: the iterator has to get past the event in any case.
	for ; it.ValidForPrefix(frame.SeekKey(k.Seq)); it.Next() {
		pk, ok := frame.DecodeEventKey(it.Item().Key())
		err := it.Item().Value(func(value []byte) error {
			f, err := frame.Decode(value)
			if err != nil {
				return err
			}

			// A frame that verifies may still be another one than its key says.
			same := f.Seq == k.Seq && f.Part == pk.Part && f.Parts == k.Parts &&
				f.Key == k.Key && f.At.Equal(k.At)
			if !ok || !same || int(f.Part) != parts {
				return frame.ErrDamaged
			}

			// The value is Badger's, and only until this function returns: copy it.
			if data == nil {
				data = make([]byte, 0, min(k.Bytes, appendBytesMax))
			}
			data = append(data, f.Payload...)
			return nil
		})
		damage = errors.Join(damage, err)
		parts++
	}

	if damage == nil && (parts != int(k.Parts) || len(data) != int(k.Bytes)) {
		damage = frame.ErrDamaged
	}
	return data, damage
}

// generationsFrom returns the generations that may hold from or later sequences.
func (s *Spool) generationsFrom(from uint64) []*generation {
	s.mu.Lock()
	defer s.mu.Unlock()

	i := sort.Search(len(s.generations), func(i int) bool { return s.generations[i].last >= from })
	return slices.Clone(s.generations[i:])
}

func (s *Spool) lastSeq(g *generation) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.last
}

func (s *Spool) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// readingMax is how many sealed generations are open for reading: one where Read is, and
// one at the frontier, whose keys Ack counts. With a single one the two would close and
// open it in turn, some thirty times for each generation.
const readingMax = 2

// withOpen calls fn with the database of a generation. If the disk fails during the call,
// it rebuilds the generation from what can be read and calls fn again. The caller must
// hold readMu.
func (s *Spool) withOpen(g *generation, fn func(*badger.DB) error) error {
	db, err := s.openForReading(g)
	if err == nil {
		if err = fn(db); !errors.Is(err, errUnreadable) {
			return err
		}

		if err = s.abandonDatabase(g, err); err == nil {
			db, err = s.openForReading(g)
		}
		if err == nil {
			return fn(db)
		}
	}
	return fmt.Errorf("spool: cannot read %s; restart promptspool to have it examined: %w",
		s.path(g.name), err)
}

// abandonDatabase gives up a database that met a fault without closing it, and rebuilds
// the generation: Badger may hold locks of its own, and closing could wait for them
// forever.
//
// The generation that is written cannot be given up. There the spool fails, and the next
// start must find what is whole. The caller must hold readMu.
func (s *Spool) abandonDatabase(g *generation, cause error) error {
	i := slices.Index(s.reading, g)
	if i < 0 {
		return s.fail(cause)
	}

	s.reading = slices.Delete(s.reading, i, i+1)
	g.db, g.proved = nil, false
	return s.restore(g, cause)
}

// openForReading returns the database of a generation. Besides the one that is written,
// the readingMax most recently used ones stay open. The caller must hold readMu.
func (s *Spool) openForReading(g *generation) (*badger.DB, error) {
	if g.db != nil {
		if i := slices.Index(s.reading, g); i >= 0 {
			s.reading = append(slices.Delete(s.reading, i, i+1), g)
		}
		return g.db, nil
	}

	// The least recently used one makes way.
	if len(s.reading) == readingMax {
		if err := s.closeReading(s.reading[0]); err != nil {
			s.config.Logger.Warn("a generation that was read did not close in order",
				"dir", s.config.Dir, "error", err)
		}
	}

	s.fetchAhead(g)
	db, err := s.openProved(g)
	if err != nil {
		// Its files were damaged since the spool was opened. Rebuild it now, instead of
		// leaving its events until the next start.
		if err := s.restore(g, err); err != nil {
			return nil, err
		}
		if db, err = s.openProved(g); err != nil {
			return nil, err
		}
	}

	g.db, s.reading = db, append(s.reading, g)
	return db, nil
}

// openProved opens a sealed generation after its value log was read whole. That is done
// once: a block that goes bad later is a fault, which withOpen handles. The caller must
// hold readMu.
func (s *Spool) openProved(g *generation) (*badger.DB, error) {
	if !g.proved {
		if err := readValueLogs(s.path(g.name)); err != nil {
			return nil, err
		}
		g.proved = true
	}

	return openSealed(s.path(g.name), s.storeLog())
}

// closeReading closes what openForReading opened of a generation, if it is open. The
// caller must hold readMu.
func (s *Spool) closeReading(g *generation) error {
	i := slices.Index(s.reading, g)
	if i < 0 {
		return nil
	}

	s.reading = slices.Delete(s.reading, i, i+1)
	err := g.db.Close()
	g.db = nil
	return err
}

// closeAllReading closes everything that openForReading opened. The caller must hold
// readMu.
func (s *Spool) closeAllReading() error {
	var errs []error
	for len(s.reading) > 0 {
		errs = append(errs, s.closeReading(s.reading[0]))
	}
	return errors.Join(errs...)
}

// fetchAhead asks the kernel to read the events of a generation, and of the next one.
//
// Badger reads them through a mapping that it advises for random access. In an old
// backlog, which is no longer in the page cache, each page would be a fault of its own,
// and a whole processor would wait for the disk with it. If the kernel ignores the
// request, reading is only slower.
func (s *Spool) fetchAhead(g *generation) {
	s.mu.Lock()
	var names []string
	if i := slices.Index(s.generations, g); i >= 0 {
		for _, g := range s.generations[i:min(i+2, len(s.generations))] {
			names = append(names, g.name)
		}
	}
	s.mu.Unlock()

	for _, name := range names {
		paths, _ := filesBySuffix(s.path(name), ".vlog")
		for _, path := range paths {
			if file, err := os.Open(path); err == nil {
				_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_WILLNEED)
				_ = file.Close()
			}
		}
	}
}
