package badgerdb

import (
	"bytes"
	"sync"
	"time"

	"promptspool/spool/archive"
)

// siftRows is how many rows' bodies are looked at between looks at the time.
const siftRows = 256

// sift takes the rows out of v.may, from i to below end, whose bodies cannot hold the words of the query, up to siftRows of them. It
// returns the first row that it did not look at. Several goroutines share the work: most of it is unpacking.
func (s *scan) sift(v verdict, i, end int) (next int, err error) {
	var rows [siftRows]int
	n := 0
	for i = v.may.within(i, end); i >= 0 && n < siftRows; i = v.may.within(i+1, end) {
		rows[n], n = i, n+1
	}
	if next = end; i >= 0 {
		next = i
	}
	ids, err := s.block.column(archive.ColumnID)
	if err != nil {
		return 0, err
	}
	var out [siftRows]bool
	var wg sync.WaitGroup
	var errs [workers]error
	for w := range workers {
		wg.Go(func() {
			h := &s.sifters[w]
			for j := w; j < n && errs[w] == nil; j += workers {
				place := ids.place(rows[j])
				_, id := rowPlace(place[:])
				out[j], errs[w] = h.excludes(s, id)
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
			v.may.unset(rows[j])
		}
	}
	if !s.deadline.IsZero() && time.Now().After(s.deadline) {
		s.late = true
	}
	return next, nil
}

// sifter is the memory of one goroutine.
type sifter struct{ body, lower []byte }

// excludes says whether a record's body cannot hold the words.
func (h *sifter) excludes(s *scan, id uuid) (bool, error) {
	item, err := s.txn.Get(s.keys.record(id))
	if err != nil {
		return false, damaged(s.keys.record(id), err)
	}
	var event uuid
	var ok bool
	if err := item.Value(func(state []byte) error { event, ok = winnerOf(state); return nil }); err != nil {
		return false, damaged(s.keys.record(id), err)
	}
	if !ok {
		return false, nil
	}
	if h.body, err = s.db.unpackBody(s.txn, s.keys.body(id, event), h.body); err != nil {
		return false, err
	}
	may, lower := s.query.MayHold(h.body, h.lower)
	h.lower = lower
	return !may, nil
}

// winnerOf reads the id of the event of a record's request out of its state, without decoding that. The state is written by
// encode, and within a text its quotes are escaped, so the first such member is the request's.
func winnerOf(state []byte) (event uuid, ok bool) {
	_, rest, _ := bytes.Cut(state, []byte(`,"request":{"at":"`))
	_, rest, ok = bytes.Cut(rest, []byte(`","id":"`))
	if !ok || len(rest) < 36 {
		return event, false
	}
	return parseUUID(string(rest[:36]))
}
