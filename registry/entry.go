package registry

import (
	"container/list"
	"slices"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
)

// entry is one cached version. key, about, text and textBytes never change; the rest is guarded by Cache.mu.
type entry struct {
	key       key
	about     about
	text      []byte // packed
	textBytes int    // of its blueprint and metadata, unpacked

	currentAt time.Time // when the server last said that it is what the key means, as far as the entry itself knows
	invalid   bool      // the server said since that it may not be
	saved     bool      // it is on disk
	askedAt   time.Time // when it was last asked for beside its use

	place *list.Element

	// opened is set when it is first asked for, and taken away when there are too many; nil without it. It is read without Cache.mu.
	opened      atomic.Pointer[opened]
	openedPlace *list.Element // nil without it
}

// about is what decides which version a key means, and whether it is still current.
type about struct {
	name     string
	version  int
	revision uint64 // the account's when it was read
	latest   int    // as labels the template's, at that revision
	labels   []wire.Label
	snippets []wire.UsedSnippet
	urls     string // the digest of the provider base URLs that came with it
}

func (p packer) entry(k key, raw *wire.RawTemplate, currentAt time.Time) *entry {
	e := &entry{key: k, text: p.pack(raw), textBytes: len(raw.Blueprint) + len(raw.Metadata), currentAt: currentAt,
		about: about{raw.Name, raw.Version, raw.Revision, raw.Latest, raw.AllLabels, raw.Snippets, raw.ProviderBaseURLs.Digest()}}
	if raw.Name == k.ident {
		e.about.name = k.ident // one text for both
	}
	return e
}

// bytes is about what the entry takes on disk, which is more than in memory.
func (e *entry) bytes() int {
	const rest = 1 << 10 // times, ids, bookkeeping
	return e.textBytes + 2*len(e.key.ident) + rest
}

// What is made of a template's bytes when it is served, at most.
const (
	rawCopies    = 5  // unpacked, decoded and answered
	renderCopies = 6  // filled in besides
	parsedCopies = 40 // tokens and nodes of texts that consist of tags
)

// bytesToRender is the memory that serving the entry rendered takes.
func (e *entry) bytesToRender() int {
	if e.opened.Load() != nil {
		return renderCopies * e.textBytes
	}

	return (renderCopies + parsedCopies) * e.textBytes
}

// entries are what is cached, with the order of use. Guarded by Cache.mu.
type entries struct {
	byKey   map[key]*entry
	byIdent map[ident][]*entry // the same, by what was asked for, whatever the version; mostly one, so that a map would be most of it
	used    *list.List         // of *entry; the last used first
	bytes   int

	opened      *list.List // of *entry that are; the last used first
	openedBytes int

	countMax, bytesMax, openedBytesMax int
}

func newEntries() entries {
	return entries{byKey: make(map[key]*entry), byIdent: make(map[ident][]*entry), used: list.New(), countMax: entriesMax, bytesMax: entryBytesMax,
		opened: list.New(), openedBytesMax: openedBytesMax}
}

// ident is a template of an account, as callers name it.
type ident struct{ account, name string }

// sibling finds the version that a selector means among the copies of other selectors of the same template, by what the newest of
// those that tells picks says of the labels; nil if it is not there.
func (s *entries) sibling(k key, tells func(*entry) bool) *entry {
	var told *entry
	for _, e := range s.byIdent[k.of()] {
		if tells(e) && e.about.latest > 0 && (told == nil || e.about.revision > told.about.revision) {
			told = e
		}
	}
	if told == nil {
		return nil
	}
	head := wire.Template{Labels: told.about.labels, Versions: make([]wire.Stamp, told.about.latest)}
	version, ok := head.Resolve(k.selector)
	if !ok {
		return nil
	}
	for _, e := range s.byIdent[k.of()] {
		if e.about.version == version && (!e.invalid || len(e.about.snippets) == 0) {
			return e
		}
	}
	return nil
}

// put adds an entry: as the last used one or, in place of the one with its key, where that stood. To be renewed in the
// background is no use.
func (s *entries) put(e *entry) {
	if old := s.byKey[e.key]; old != nil {
		e.place = s.used.InsertBefore(e, old.place)
		s.drop(e.key)
	} else {
		e.place = s.used.PushFront(e)
	}

	s.byKey[e.key] = e
	of := e.key.of()
	s.byIdent[of] = append(s.byIdent[of], e)
	s.bytes += e.bytes()
}

func (s *entries) touch(e *entry) {
	s.used.MoveToFront(e.place)
	if e.openedPlace != nil {
		s.opened.MoveToFront(e.openedPlace)
	}
}

func (s *entries) drop(k key) {
	if e := s.byKey[k]; e != nil {
		s.used.Remove(e.place)
		s.bytes -= e.bytes()
		delete(s.byKey, k)
		if of := k.of(); len(s.byIdent[of]) > 1 {
			s.byIdent[of] = slices.DeleteFunc(s.byIdent[of], func(other *entry) bool { return other == e })
		} else {
			delete(s.byIdent, of)
		}
		s.close(e)
	}
}

// keepOpened keeps an entry open, and closes those that were not used for longest when there are too many bytes of them.
func (s *entries) keepOpened(e *entry, o *opened) {
	if s.byKey[e.key] != e || e.openedPlace != nil || o.prepared.Bytes() > s.openedBytesMax {
		return
	}
	e.opened.Store(o)
	e.openedPlace = s.opened.PushFront(e)
	s.openedBytes += o.prepared.Bytes()
	for s.openedBytes > s.openedBytesMax {
		s.close(s.opened.Back().Value.(*entry))
	}
}

// close lets go of the opened form.
func (s *entries) close(e *entry) {
	if e.openedPlace == nil {
		return
	}
	s.openedBytes -= e.opened.Swap(nil).prepared.Bytes()
	s.opened.Remove(e.openedPlace)
	e.openedPlace = nil
}

// shrink drops the least recently used until all is within the bounds, and tells their keys.
func (s *entries) shrink() (dropped []key) {
	for len(s.byKey) > s.countMax || s.bytes > s.bytesMax {
		k := s.used.Back().Value.(*entry).key
		s.drop(k)
		dropped = append(dropped, k)
	}
	return dropped
}

// lowestRevision is from where a feed must tell so that no change of the account's entries is missed.
func (s *entries) lowestRevision(account string) uint64 {
	var lowest uint64
	first := true
	for k, e := range s.byKey {
		if k.account == account && (first || e.about.revision < lowest) {
			lowest, first = e.about.revision, false
		}
	}
	return lowest
}
