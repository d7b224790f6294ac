package badgerdb

import (
	"bytes"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/database/badgerdb/blocks"
)

// siftRows is how many rows are sifted between looks at the clock.
const siftRows = 256

// sift clears the rows of v.May, from i to below end, whose bodies cannot contain the
// words of the query. It takes up to siftRows of them and returns the first row that it
// left. Several goroutines share the work: most of it is unpacking.
func (s *scan) sift(v blocks.Verdict, i, end int) (next int, err error) {
	var rows [siftRows]int

	// rows[:n] will be sifted; next comes after them.
	n := 0
	for i = v.May.Within(i, end); i >= 0 && n < siftRows; i = v.May.Within(i+1, end) {
		rows[n] = i
		n++
	}
	if next = end; i >= 0 {
		next = i
	}

	ids, err := s.block.Places()
	if err != nil {
		return 0, err
	}

	var out [siftRows]bool
	var errs [workers]error
	var wg sync.WaitGroup

	for w := range workers {
		wg.Go(func() {
			// Bodies are stored in the order of their ids, which is mostly that of time.
			// Each goroutine takes one range, from its old end on, so that its iterator
			// moves forward. Rows not sifted in time are judged by the next page.
			for j := n*(w+1)/workers - 1; j >= n*w/workers && errs[w] == nil && !s.isOver(); j-- {
				place := ids.At(rows[j])
				_, id := blocks.DecodePlace(place[:])
				out[j], errs[w] = s.sifters[w].excludes(s, id)
			}
		})
	}
	wg.Wait()

	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}

	for j := range n {
		if out[j] {
			v.May.Unset(rows[j])
		}
	}

	// The rows sifted so far are still visited, so that a page makes progress.
	s.late = s.late || s.isOver()

	return next, s.db.stopped(s.ctx)
}

// sifter is the memory of one sifting goroutine, with its iterator over the bodies.
type sifter struct {
	bodies      *badger.Iterator // over all bodies of the account; nil until it is needed
	body, lower []byte
}

// close releases the iterator.
func (h *sifter) close() {
	if h.bodies != nil {
		h.bodies.Close()
	}
}

// stepsMax is how many keys a sifter passes one by one before it seeks, which costs more.
const stepsMax = 4

// excludes reports whether no body of a record can contain the words. A record may have
// other bodies besides that of its request, but seldom has; reading its state, which names
// that one, would cost as much as the body.
func (h *sifter) excludes(s *scan, id uuid) (bool, error) {
	// All bodies of a record share this prefix.
	prefix := append(s.keys.table(tableBody), id[:]...)
	if h.bodies == nil {
		h.bodies = s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableBody)})
	}

	it := h.bodies
	for step := 0; !it.ValidForPrefix(prefix); step++ {
		if step < stepsMax && it.Valid() && bytes.Compare(it.Item().Key(), prefix) < 0 {
			it.Next()
			continue
		}
		it.Seek(prefix)
		break
	}

	excluded := false
	for ; it.ValidForPrefix(prefix); it.Next() {
		err := it.Item().Value(func(value []byte) (err error) {
			h.body, err = s.db.codec.Unpack(value, h.body)
			return err
		})
		if err != nil {
			return false, damaged(it.Item().KeyCopy(nil), err)
		}

		may, lower := s.query.MayHold(h.body, h.lower)
		if h.lower = lower; may {
			return false, nil
		}

		excluded = true
	}

	return excluded, nil // without any body, the row itself decides
}
