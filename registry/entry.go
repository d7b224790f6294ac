package registry

import (
	"container/list"
	"slices"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// entry is one cached version. key and raw never change; the rest is guarded by Cache.mu.
type entry struct {
	key key
	raw wire.RawTemplate

	currentAt time.Time // when the server last said that it is what the key means, as far as the entry itself knows
	invalid   bool      // the server said since that it may not be
	saved     bool      // it is on disk
	askedAt   time.Time // when it was last asked for beside its use

	place *list.Element

	// prepared is set when it is first asked for, and taken away when there are too many; nil without it. It is read without Cache.mu.
	prepared      atomic.Pointer[render.Prepared]
	preparedPlace *list.Element // nil without it
}

// bytes is about what the entry takes, in memory as on disk.
func (e *entry) bytes() int {
	const rest = 1 << 10 // times, ids, bookkeeping
	return len(e.raw.Blueprint) + len(e.raw.Metadata) + 2*len(e.key.ident) + rest
}

// entries are what is cached, with the order of use. Guarded by Cache.mu.
type entries struct {
	byKey   map[key]*entry
	byIdent map[ident][]*entry // the same, by what was asked for, whatever the version; mostly one, so that a map would be most of it
	used    *list.List         // of *entry; the last used first
	bytes   int

	preparedOrder *list.List // of *entry that have theirs; the last made first
	preparedBytes int

	countMax, bytesMax, preparedBytesMax int
}

func newEntries() entries {
	return entries{byKey: make(map[key]*entry), byIdent: make(map[ident][]*entry), used: list.New(), countMax: entriesMax, bytesMax: entryBytesMax,
		preparedOrder: list.New(), preparedBytesMax: preparedBytesMax}
}

// ident is a template of an account, as callers name it.
type ident struct{ account, name string }

// sibling finds the version that a selector means among the copies of other selectors of the same template, by what the newest of
// those that tells picks says of the labels; nil if it is not there.
func (s *entries) sibling(k key, tells func(*entry) bool) *entry {
	var told *entry
	for _, e := range s.byIdent[k.of()] {
		if tells(e) && e.raw.Latest > 0 && (told == nil || e.raw.Revision > told.raw.Revision) {
			told = e
		}
	}
	if told == nil {
		return nil
	}
	head := wire.Template{Labels: told.raw.AllLabels, Versions: make([]wire.Stamp, told.raw.Latest)}
	version, ok := head.Resolve(k.selector)
	if !ok {
		return nil
	}
	for _, e := range s.byIdent[k.of()] {
		if e.raw.Version == version && (!e.invalid || len(e.raw.Snippets) == 0) {
			return e
		}
	}
	return nil
}

// put adds an entry as the last used one, in the place of the one with its key.
func (s *entries) put(e *entry) {
	s.drop(e.key)
	s.byKey[e.key] = e
	of := e.key.of()
	s.byIdent[of] = append(s.byIdent[of], e)
	e.place = s.used.PushFront(e)
	s.bytes += e.bytes()
}

func (s *entries) touch(e *entry) { s.used.MoveToFront(e.place) }

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
		s.dropPrepared(e)
	}
}

// keepPrepared keeps the parsed form of an entry, and lets the oldest ones go when there are too many bytes of them.
func (s *entries) keepPrepared(e *entry, p *render.Prepared) {
	if s.byKey[e.key] != e || e.prepared.Load() != nil || p.Bytes() > s.preparedBytesMax {
		return
	}
	e.prepared.Store(p)
	e.preparedPlace = s.preparedOrder.PushFront(e)
	s.preparedBytes += p.Bytes()
	for s.preparedBytes > s.preparedBytesMax {
		s.dropPrepared(s.preparedOrder.Back().Value.(*entry))
	}
}

func (s *entries) dropPrepared(e *entry) {
	if e.preparedPlace == nil {
		return
	}
	s.preparedBytes -= e.prepared.Swap(nil).Bytes()
	s.preparedOrder.Remove(e.preparedPlace)
	e.preparedPlace = nil
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
		if k.account == account && (first || e.raw.Revision < lowest) {
			lowest, first = e.raw.Revision, false
		}
	}
	return lowest
}
