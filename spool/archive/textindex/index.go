package textindex

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"sync"

	"promptspool/api/words"
)

// Bounds of an index.
const (
	DocsMax = 1 << docBits  // documents
	Pages   = 1 << pageBits // pages

	docBits   = 13
	pageBits  = 8
	termBits  = 24
	placeBits = termBits - pageBits // of a term in its page
	groupBits = docBits - 6         // of the documents of a group: there are 64 groups
	pairMax   = 3                   // bytes of the shorter of two joined words that are a term together
	listMax   = 62                  // bytes of the documents of a term; of more, groups are kept
	groupsMax = 40                  // groups that are kept; a term in more of them is everywhere
)

// ErrPage reports bytes that are not a page.
var ErrPage = errors.New("the page of the text index is not one that this version writes")

// Term is the hash of a word or of two neighbours.
type Term uint32

func termOf(h uint64) Term {
	h ^= h >> 32
	return Term(h * 0xd6e8feb86659fd93 >> (64 - termBits))
}

// Page returns the number of the page that has the term.
func (t Term) Page() int { return int(t >> placeBits) }

// terms tells the terms of words that follow each other.
type terms struct {
	hash uint64
	size int
	char bool
}

// of appends the terms of the next word.
func (t *terms) of(w *words.Scanner, all []Term) []Term {
	// A single character of a script without blanks stands nearly everywhere.
	if !w.Char {
		all = append(all, termOf(w.Hash))
	}
	if w.Joined && w.Char == t.char && (t.char || min(t.size, w.Size) <= pairMax) {
		all = append(all, termOf(t.hash*words.HashPrime^w.Hash))
	}
	*t = terms{w.Hash, w.Size, w.Char}

	return all
}

// reading is what Terms needs memory for.
type reading struct {
	words words.Scanner
	seen  [1 << 12]Term // plus 1
	all   []Term
}

var readings = sync.Pool{New: func() any { return new(reading) }}

// Terms returns the terms of texts, in no order and hardly any twice. They belong to the caller.
func Terms(texts ...string) []Term {
	r := readings.Get().(*reading)
	defer readings.Put(r)
	clear(r.seen[:])
	kept := r.all[:0]
	for _, text := range texts {
		r.words.Reset(text)
		for t := new(terms); r.words.Scan(); {
			n := len(kept)
			more := t.of(&r.words, kept)
			kept = more[:n]
			for _, term := range more[n:] {
				// Most words of a text come again.
				if slot := &r.seen[term%Term(len(r.seen))]; *slot != term+1 {
					*slot = term + 1
					kept = append(kept, term)
				}
			}
		}
	}
	r.all = kept
	r.words.Reset("")

	return slices.Clone(kept)
}

// PhraseTerms returns the terms that each text with a phrase has, in order. With prefix set, the last
// word of the phrase may go on. A phrase of a single character, or of the beginning of a word, has none.
func PhraseTerms(phrase string, prefix bool) (all []Term) {
	var w words.Scanner
	w.Reset(phrase)
	for t := new(terms); w.Scan(); {
		// No index has the hash of a part of a word.
		if prefix && w.End == len(phrase) {
			break
		}
		all = t.of(&w, all)
	}
	slices.Sort(all)

	return slices.Compact(all)
}

// Builder makes the index of up to DocsMax documents, and then of others with the same memory. The
// zero Builder is empty. Not safe for concurrent use.
type Builder struct {
	pairs  [Pages][]uint32 // a term's place in its page, and a document
	coarse [Pages][]group
	spare  []uint32
}

// group is a term whose documents are known by groups only.
type group struct {
	place  uint32
	groups uint64
}

// Add adds the terms of a document. Documents come in their order; those of Take may come first.
func (b *Builder) Add(doc int, terms []Term) {
	for _, t := range terms {
		b.pairs[t.Page()] = append(b.pairs[t.Page()], uint32(t)<<docBits|uint32(doc))
	}
}

// Encode returns a page by its number, and forgets it. It belongs to the caller.
func (b *Builder) Encode(page int) []byte {
	pairs, coarse := b.sorted(page), b.coarse[page]
	b.coarse[page] = coarse[:0]
	slices.SortFunc(coarse, func(x, y group) int { return int(x.place) - int(y.place) })

	// Not nil: an index has all pages.
	out := []byte{}
	last := uint32(0)
	for len(pairs)+len(coarse) > 0 {
		place := uint32(math.MaxUint32)
		if len(pairs) > 0 {
			place = pairs[0] >> docBits
		}
		if len(coarse) > 0 {
			place = min(place, coarse[0].place)
		}

		var groups uint64
		for ; len(coarse) > 0 && coarse[0].place == place; coarse = coarse[1:] {
			groups |= coarse[0].groups
		}
		n := 0
		for n < len(pairs) && pairs[n]>>docBits == place {
			n++
		}
		out = binary.AppendUvarint(out, uint64(place-last))
		out = appendDocs(out, pairs[:n], groups)
		last, pairs = place, pairs[n:]
	}

	return out
}

// Lacks compares a page with the documents that were added for it, and forgets these. It returns one that
// has a term of which the page says that it has not; -1 if there is none.
func (b *Builder) Lacks(number int, page []byte) (doc int, err error) {
	r := reader{rest: page}
	more := r.next()
	var has Docs
	last := uint64(math.MaxUint64)
	for _, p := range b.sorted(number) {
		if place := uint64(p >> docBits); place != last {
			for more && r.place < place {
				more = r.next()
			}
			has = (Docs{})
			if more && r.place == place {
				has.add(&r)
			}
			last = place
		}

		if doc := int(p % DocsMax); !has.Has(doc) {
			return doc, r.err
		}
	}

	return -1, r.err
}

// sorted returns the pairs of a page by term, and forgets them. Those of a term keep their order, which is
// that of the documents but for those that Take added. They are valid until the next call.
func (b *Builder) sorted(page int) []uint32 {
	pairs := b.pairs[page]
	b.pairs[page] = pairs[:0]
	for i := range pairs {
		pairs[i] &= 1<<(placeBits+docBits) - 1
	}

	const digit = 1 << (placeBits / 2)
	b.spare = slices.Grow(b.spare[:0], len(pairs))[:len(pairs)]
	from, to := pairs, b.spare
	for shift := docBits; shift < docBits+placeBits; shift += placeBits / 2 {
		var at [digit + 1]int
		for _, p := range from {
			at[p>>shift%digit+1]++
		}
		for i := range digit {
			at[i+1] += at[i]
		}
		for _, p := range from {
			i := &at[p>>shift%digit]
			to[*i] = p
			*i++
		}
		from, to = to, from
	}

	return from
}

// A page has its terms in order, each as
//
//	n   its place, less that of the term before, uvarint
//	n   twice its only document, plus 1, uvarint; or twice the length of what follows
//	    its documents, uvarints, each less the one before; or 8 bytes, the groups that have some;
//	    or nothing, where it may be in any
const groupsHead = 2 * (listMax + 1)

// appendDocs appends the documents of a term, and the groups of others.
func appendDocs(b []byte, docs []uint32, groups uint64) []byte {
	// Those of Take come before those of Add.
	if !slices.IsSorted(docs) {
		slices.Sort(docs)
	}

	var list [2 * listMax]byte
	size, last, n := 0, uint32(0), 0
	coarse := groups != 0
	for i, p := range docs {
		doc := p % DocsMax
		if i > 0 && doc == last {
			continue
		}
		groups |= 1 << (doc >> groupBits)
		if size <= listMax {
			size += binary.PutUvarint(list[size:], uint64(doc-last))
		}
		last = doc
		n++
	}

	switch {
	case !coarse && n == 1:
		return binary.AppendUvarint(b, uint64(last)<<1|1)
	case !coarse && size <= listMax:
		return append(append(b, byte(size)<<1), list[:size]...)
	case bits.OnesCount64(groups) <= groupsMax:
		return binary.LittleEndian.AppendUint64(append(b, groupsHead), groups)
	}

	return append(b, 0)
}

// reader reads a page, term by term. After a fault next returns false.
type reader struct {
	rest  []byte
	place uint64
	head  uint64 // odd: twice the only document, plus 1; otherwise twice the length of list
	list  []byte
	err   error
}

func (r *reader) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	more, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.err = ErrPage
		return false
	}
	head, m := binary.Uvarint(r.rest[n:])
	if m <= 0 {
		r.err = ErrPage
		return false
	}
	r.place, r.head, r.rest, r.list = r.place+more, head, r.rest[n+m:], nil
	size := head / 2
	switch {
	case head%2 == 1:
		return true
	case head == groupsHead:
		size = 8
	}
	if size > uint64(len(r.rest)) || head > groupsHead {
		r.err = ErrPage
		return false
	}
	r.list, r.rest = r.rest[:size], r.rest[size:]

	return true
}

// docs returns the documents of the term, or adds the groups of them that it returns.
func (r *reader) docs(each func(doc uint64)) (groups uint64) {
	switch {
	case r.head%2 == 1:
		each(r.head / 2)
		return 0
	case r.head == groupsHead:
		return binary.LittleEndian.Uint64(r.list)
	case r.head == 0:
		return math.MaxUint64
	}

	doc := uint64(0)
	for b := r.list; len(b) > 0; {
		more, n := binary.Uvarint(b)
		if n <= 0 {
			r.err = ErrPage
			return 0
		}
		doc += more
		each(doc)
		b = b[n:]
	}

	return 0
}

// Take adds the documents of another index's page. to returns their numbers here, in the same order, and
// -1 for those that are not in this one.
func (b *Builder) Take(number int, page []byte, to func(doc int) int) error {
	r := reader{rest: page}
	for r.next() {
		place := uint32(r.place)
		groups := r.docs(func(doc uint64) {
			if at := to(int(doc % DocsMax)); at >= 0 {
				b.pairs[number] = append(b.pairs[number], place<<docBits|uint32(at))
			}
		})
		groups = moved(groups, to)
		if groups != 0 {
			b.coarse[number] = append(b.coarse[number], group{place, groups})
		}
	}

	return r.err
}

// moved returns the groups that documents of other groups are in now.
func moved(groups uint64, to func(doc int) int) (now uint64) {
	for ; groups != 0; groups &= groups - 1 {
		first := bits.TrailingZeros64(groups) << groupBits
		for doc := first; doc < first+1<<groupBits; doc++ {
			if at := to(doc); at >= 0 {
				now |= 1 << (at >> groupBits)
			}
		}
	}

	return now
}

// Docs is a set of documents; the zero Docs is empty.
type Docs [DocsMax / 64]uint64

// All returns the set of all documents.
func All() (d Docs) {
	for i := range d {
		d[i] = math.MaxUint64
	}
	return d
}

func (d *Docs) put(doc uint64) { d[doc/64%uint64(len(d))] |= 1 << (doc % 64) }

// add adds the documents that may have the reader's term.
func (d *Docs) add(r *reader) {
	groups := r.docs(d.put)
	for i := range d {
		if groups>>(i>>(groupBits-6))&1 != 0 {
			d[i] = math.MaxUint64
		}
	}
}

// Keep takes out the documents that do not have a term, of which page is the page.
func (d *Docs) Keep(page []byte, t Term) error {
	var kept Docs
	r := reader{rest: page}
	for place := uint64(t) % (1 << placeBits); r.next() && r.place <= place; {
		if r.place < place {
			continue
		}
		kept.add(&r)
		break
	}
	for i := range d {
		d[i] &= kept[i]
	}

	return r.err
}

// Has reports whether a document is in the set.
func (d *Docs) Has(doc int) bool { return d[doc/64]>>(doc%64)&1 != 0 }
