package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	badger "github.com/dgraph-io/badger/v4"
)

// Lane names where events go that cannot be delivered and must not hold up the others.
type Lane byte

// The lanes.
const (
	LaneHeld Lane = 'h' // events of a key that the server refuses
	LaneDead Lane = 'd' // events that the server refuses for their content
)

// String is the lane's name in messages.
func (l Lane) String() string {
	if l == LaneDead {
		return "dead"
	}
	return "held"
}

// LaneEntry is an event in a lane, with why and when it was moved there.
type LaneEntry struct {
	Entry
	Reason  string
	MovedAt time.Time
}

// reasonBytesMax bounds a reason; what is longer is cut.
const reasonBytesMax = 4096

// lanes is the database of both lanes: one Badger database for as long as the spool lives, opened on first use. A key is
// the lane's letter and an event key. What is framed is, big-endian:
//
//	offset  bytes  field
//	     0      8  time of the move, unix nanoseconds
//	     8      2  length n of the reason
//	    10      n  reason
//	  10+n      -  the event's data
type lanes struct {
	dir   string
	log   badger.Logger
	alive func() error // why nothing may be written, nil if it may

	mu     sync.Mutex
	db     *badger.DB // nil until first use
	closed bool
	usage  map[Lane]*usage
}

// load opens the database if it exists, and counts what is in it.
func (l *lanes) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usage = map[Lane]*usage{LaneHeld: {}, LaneDead: {}}
	if _, err := os.Stat(l.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	for lane := range l.usage {
		l.walkFrom(lane, 0, func(k eventKey, _ *badger.Iterator) bool {
			l.usage[lane].add(k.key, 1, int64(k.bytes))
			return true
		})
	}
	return nil
}

// open opens or creates the database. A folder with tables and no MANIFEST is refused, as Badger would delete the tables.
// With mu held.
func (l *lanes) open() error {
	if l.closed {
		return ErrClosed
	}
	if l.db != nil {
		return nil
	}
	if err := os.Mkdir(l.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	tables, err := filesBySuffix(l.dir, ".sst")
	if err != nil {
		return err
	}
	if err := refuseWithoutManifest(l.dir); err != nil && len(tables) > 0 {
		return fmt.Errorf("spool: %s holds tables but no MANIFEST, and opening it would delete them; "+
			"restore the file from a copy or move the folder away: %w", l.dir, err)
	}
	db, err := badger.Open(storeOptions(l.dir, appendBytesMax+(4<<20), l.log).WithNumCompactors(2))
	if err != nil {
		return fmt.Errorf("spool: cannot open the lanes in %s; move the folder away to go on without them: %w", l.dir, err)
	}
	if err := errors.Join(tighten(l.dir), syncDir(filepath.Dir(l.dir))); err != nil {
		return errors.Join(err, db.Close())
	}
	l.db = db
	return nil
}

func (l *lanes) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.db == nil {
		return nil
	}
	err := l.db.Close()
	l.db = nil
	return errors.Join(err, tighten(l.dir))
}

// move copies entries to a lane. An entry whose sequence is there already stays as it was.
func (l *lanes) move(lane Lane, reason string, now time.Time, entries []Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return err
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return l.has(lane, e.Seq) })
	for len(entries) > 0 {
		n, bytes := 1, len(entries[0].Data)
		for n < len(entries) && n < laneCommitEvents && bytes+len(entries[n].Data) <= commitBytesMax {
			bytes += len(entries[n].Data)
			n++
		}
		if err := l.commit(lane, reason, now, entries[:n]); err != nil {
			return fmt.Errorf("spool: cannot move events %d to %d to the %s lane: %w", entries[0].Seq, entries[n-1].Seq, lane, err)
		}
		entries = entries[n:]
	}
	return nil
}

// laneCommitEvents bounds the events of one commit.
const laneCommitEvents = 1000

// commit puts entries into a lane in one transaction.
func (l *lanes) commit(lane Lane, reason string, now time.Time, entries []Entry) error {
	var moved usage
	txn := l.db.NewTransaction(true)
	defer txn.Discard()
	for _, e := range entries {
		b := wrapLane(reason, now, e.Data)
		parts := splitFrames(b)
		k := eventKey{seq: e.Seq, parts: uint16(len(parts)), key: e.Key, bytes: uint32(len(b)), at: e.At}
		if err := setEvent(txn, k, parts, byte(lane)); err != nil {
			return err
		}
		moved.add(e.Key, 1, int64(len(b)))
	}
	if err := txn.Commit(); err != nil {
		return err
	}
	for key, t := range moved.keys {
		l.usage[lane].add(key, t.events, t.bytes)
	}
	return l.alive() // of a value log that it could not sync, Badger told only storeLog
}

func wrapLane(reason string, movedAt time.Time, data []byte) []byte {
	reason = reason[:min(len(reason), reasonBytesMax)]
	b := make([]byte, 0, 10+len(reason)+len(data))
	b = binary.BigEndian.AppendUint64(b, uint64(movedAt.UnixNano()))
	b = binary.BigEndian.AppendUint16(b, uint16(len(reason)))
	return append(append(b, reason...), data...)
}

func unwrapLane(b []byte) (reason string, movedAt time.Time, data []byte, err error) {
	if len(b) < 10 || len(b) < 10+int(binary.BigEndian.Uint16(b[8:])) {
		return "", time.Time{}, nil, errFrame
	}
	n := 10 + int(binary.BigEndian.Uint16(b[8:]))
	return string(b[10:n]), time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC(), b[n:], nil
}

func (l *lanes) has(lane Lane, seq uint64) (found bool) {
	l.walkFrom(lane, seq, func(k eventKey, _ *badger.Iterator) bool {
		found = k.seq == seq
		return false
	})
	return found
}

// walkFrom calls yield for each event with sequence >= from; the iterator stands on its first frame.
func (l *lanes) walkFrom(lane Lane, from uint64, yield func(eventKey, *badger.Iterator) bool) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{byte(lane)}})
	defer it.Close()
	for it.Seek(seekKey(from, byte(lane))); it.Valid(); it.Next() {
		k, ok := decodeEventKey(it.Item().Key()[1:])
		if ok && k.part == 0 && !yield(k, it) {
			return
		}
	}
}

// next reads the first event with sequence >= from; ok is false when there is none.
func (l *lanes) next(lane Lane, from uint64) (e LaneEntry, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return e, true, ErrClosed
	}
	if l.db == nil {
		return e, false, nil
	}
	l.walkFrom(lane, from, func(k eventKey, it *badger.Iterator) bool {
		ok = true
		e.Entry = Entry{Seq: k.seq, Key: k.key, At: k.at}
		var b []byte
		if b, err = readEvent(it, []byte{byte(lane)}, k); err == nil {
			e.Reason, e.MovedAt, e.Data, err = unwrapLane(b)
		}
		if err != nil {
			err = fmt.Errorf("spool: event %d in the %s lane cannot be read: %w", k.seq, lane, err)
		}
		return false
	})
	return e, ok, err
}

func (l *lanes) events(lane Lane) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usage[lane].total.events
}

func (l *lanes) keys() map[uint32]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := make(map[uint32]struct{})
	for _, u := range l.usage {
		for key := range maps.Keys(u.keys) {
			keys[key] = struct{}{}
		}
	}
	return keys
}

// Hold copies events of a key that the server refuses to the held lane. When it returns nil all of them are fsynced there, and may
// be acknowledged. To hold an event twice does nothing. On an error some may be in the lane; hold them again.
func (s *Spool) Hold(key uint32, reason string, entries []Entry) error {
	for _, e := range entries {
		if e.Key != key {
			return fmt.Errorf("spool: event %d is of key %d, not %d", e.Seq, e.Key, key)
		}
	}
	return s.move(LaneHeld, reason, entries)
}

// Bury copies an event that the server refuses for its content to the dead letters. When it returns nil the event is
// fsynced there, and may be acknowledged. To bury an event twice does nothing.
func (s *Spool) Bury(reason string, e Entry) error {
	return s.move(LaneDead, reason, []Entry{e})
}

func (s *Spool) move(lane Lane, reason string, entries []Entry) error {
	if err := s.lanes.move(lane, reason, s.config.Now(), entries); err != nil {
		return err
	}
	CrashPoint(CrashLaneSynced)
	return nil
}

// Lane yields the events of a lane in order of sequence, one in memory at a time. What cannot be read is yielded as an
// error, with Seq and Key set, and the next one follows. After ErrClosed nothing follows.
func (s *Spool) Lane(lane Lane) iter.Seq2[LaneEntry, error] {
	return func(yield func(LaneEntry, error) bool) {
		for from := uint64(0); ; {
			e, ok, err := s.lanes.next(lane, from)
			if !ok || !yield(e, err) || errors.Is(err, ErrClosed) {
				return
			}
			from = e.Seq + 1
		}
	}
}
