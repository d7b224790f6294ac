package badgerdb

import (
	"context"
	"slices"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/database/badgerdb/blocks"
	"promptspool/spool/database/compress"
)

// Each block has an index of the words in its records' bodies; see package textindex. Its documents
// are the rows of the block. It is made with the block: of rows that were packed before with the same
// text it takes over what the index until now has, unless that is of another words.Folding.

// packed is a block that is packed again: where its rows are in its index.
type packed struct {
	place []byte
	rows  map[blocks.Place]packedRow
}

type packedRow struct{ doc, text int }

// packedRows returns where the rows of a block are in its index.
func packedRows(b *block) (p packed, err error) {
	if b.Head.Folding != words.Folding {
		return p, nil
	}
	ids, err := b.Places()
	if err != nil {
		return p, err
	}

	p = packed{b.Place, make(map[blocks.Place]packedRow, b.Head.Rows)}
	for i := range b.Head.Rows {
		row, err := b.Row(i, textColumns)
		if err != nil {
			return p, err
		}
		p.rows[ids.At(i)] = packedRow{i, row.TextHash}
	}

	return p, nil
}

// forget leaves nothing to take over if a hidden row is gone, or has another text now. Of a frequent term
// the index has groups only, and these would keep a word that no row has any more.
func (p *packed) forget(hidden map[blocks.Place]bool, now []blocks.Placed) {
	texts := make(map[blocks.Place]int, len(now))
	for i := range now {
		texts[now[i].Place] = now[i].Row.TextHash
	}
	for place := range hidden {
		if was, found := p.rows[place]; found && was.text != texts[place] {
			*p = packed{}
			return
		}
	}
}

// writeWords returns the writes of the index of a block with these rows. Some may have been in another
// block before, whose index still exists.
func (db *DB) writeWords(
	ctx context.Context, txn *badger.Txn, k keys, rows []blocks.Placed, before packed,
) (writes []write, err error) {
	// After a fault it may hold words of rows that are in no block.
	defer func() {
		if err != nil {
			db.words = textindex.Builder{}
		}
	}()

	// By the document until now.
	now := make([]int, textindex.DocsMax)
	for i := range now {
		now[i] = -1
	}

	for i := range rows {
		was, had := before.rows[rows[i].Place]
		if had && was.text != 0 && was.text == rows[i].Row.TextHash {
			now[was.doc] = i
			continue
		}
		terms, err := db.termsOf(ctx, txn, k, rows[i].Place, rows[i].Row.TextHash)
		if err != nil {
			return nil, err
		}
		db.words.Add(i, terms)
	}

	var page []byte
	for n := range textindex.Pages {
		if before.place != nil {
			page, err = readPacked(txn, db.codec, k.words(n, before.place), page)
			if err != nil {
				return nil, err
			}
			if err := db.words.Take(n, page, func(doc int) int { return now[doc] }); err != nil {
				return nil, damaged(k.words(n, before.place), err)
			}
		}
		writes = append(writes, write{k.words(n, rows[0].Place[:]), compress.Plain(db.words.Encode(n))})
	}

	return writes, nil
}

// termsMax bounds the terms that are remembered: 16 MB, of some 10,000 records.
const termsMax = 4 << 20

// recentWords remembers the terms of records that came lately. It is safe for concurrent use.
type recentWords struct {
	mu          sync.Mutex
	now, before map[textKey][]textindex.Term // each of at most half of termsMax
	held        int                          // terms of now
}

// textKey is a text of a record.
type textKey struct {
	keys keys
	id   uuid
	hash int // see wire.Row.TextHash
}

func (r *recentWords) get(key textKey) (terms []textindex.Term, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	terms, found = r.now[key]
	if !found {
		terms, found = r.before[key]
	}

	return terms, found
}

func (r *recentWords) put(key textKey, terms []textindex.Term) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if len(terms) > termsMax/2 {
		return
	}
	if r.held += len(terms); r.now == nil || r.held > termsMax/2 {
		r.now, r.before, r.held = make(map[textKey][]textindex.Term), r.now, len(terms)
	}
	r.now[key] = terms
}

// noteWords remembers the words of requests that were just read.
func (db *DB) noteWords(k keys, events []archive.Event) {
	for i := range events {
		e := &events[i]
		id, ok := parseUUID(e.RequestID)
		if e.Request == nil || e.Request.Call == nil || !ok {
			continue
		}
		db.recent.put(textKey{k, id, archive.TextHash(e.Hash)}, textindex.Terms(e.Request.Call.Searched()))
	}
}

// termsOf returns the terms of the row of a place. A record may have other bodies besides that of its
// request: to tell them apart would cost as much.
func (db *DB) termsOf(
	ctx context.Context, txn *badger.Txn, k keys, place blocks.Place, hash int,
) ([]textindex.Term, error) {
	_, id := blocks.DecodePlace(place[:])
	key := textKey{k, id, hash}
	if terms, found := db.recent.get(key); found {
		return terms, nil
	}

	it := txn.NewIterator(badger.IteratorOptions{Prefix: append(k.table(tableBody), id[:]...)})
	defer it.Close()
	var texts []string
	for it.Rewind(); it.Valid(); it.Next() {
		body, err := db.readBody(txn, k, it.Item().KeyCopy(nil))
		if err != nil {
			return nil, err
		}
		content := query.ReadContent(ctx, body)
		texts = append(texts, content.Input, content.Output)
	}
	// A text that was read until ctx ended may lack words.
	if err := db.stopped(ctx); err != nil {
		return nil, err
	}
	terms := textindex.Terms(texts...)
	db.recent.put(key, terms)

	return terms, nil
}

// words returns the key of a page of a block's index.
func (k keys) words(page int, place []byte) []byte {
	return append(append(k.table(tableWords), byte(page)), place...)
}

// textColumns are those that show if the text of a row has changed since it was packed.
const textColumns = rowcode.PlaceColumns | 1<<rowcode.ColumnText

// wordsIn reads the rows of the current block that may have what a query looks for in texts. It is
// nil if the query looks for nothing that the index has, or the index has other words.
func (s *scan) wordsIn() *textindex.Docs {
	if len(s.terms) == 0 || s.block.Head.Folding != words.Folding {
		return nil
	}

	docs := s.query.Candidates(func(t textindex.Term, docs *textindex.Docs) {
		key := s.keys.words(t.Page(), s.block.Place)
		page, err := readPacked(s.txn, s.db.codec, key, s.page)
		if s.fail(err) {
			return
		}
		s.page = page
		if err := docs.Keep(page, t); err != nil {
			s.fail(damaged(key, err))
		}
	})

	return &docs
}

// lacksWords reports whether a row that stands alone does not have the words that the query looks for.
func (s *scan) lacksWords(l *lone) bool {
	if len(s.terms) == 0 {
		return false
	}
	var row wire.Row
	if err := l.read(&row, 1<<rowcode.ColumnText); err != nil {
		s.fail(damaged(s.keys.late(l.place[:]), err))
		return true
	}
	terms, err := s.db.termsOf(s.ctx, s.txn, s.keys, l.place, row.TextHash)
	if s.fail(err) {
		return true
	}

	docs := s.query.Candidates(func(t textindex.Term, docs *textindex.Docs) {
		if !slices.Contains(terms, t) {
			*docs = textindex.Docs{}
		}
	})

	return !docs.Has(0)
}
