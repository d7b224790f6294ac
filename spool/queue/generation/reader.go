package generation

import (
	"errors"
	"reflect"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
	"promptspool/spool/rawlog"
)

// Reader reads one generation. Its methods are safe for concurrent use.
//
// Badger reads through mappings. After ErrUnreadable its locks cannot be trusted: abandon
// the Reader then, without closing it.
type Reader struct{ db *badger.DB }

// Open opens a sealed generation for reading; Close it afterwards.
//
// Badger changes nothing in its folder, and keeps no memtable for it. By then its table
// was read whole, but not its value log: see ReadValueLogs. The error is ErrUnsealed if
// the files do not match the SEAL.
func Open(dir string, log badger.Logger) (*Reader, error) {
	sealed, err := IsSealed(dir)
	if err != nil {
		return nil, err
	}
	if !sealed {
		return nil, ErrUnsealed
	}

	// A block that the disk cannot read would be SIGBUS inside Badger. Here it is an
	// error.
	if err := readFirstBlocks(dir); err != nil {
		return nil, err
	}

	// Badger reads the table through a mapping while it opens it.
	r := new(Reader)
	err = rawlog.Guard(dir, func() (err error) {
		r.db, err = badger.Open(readOnly(generationOptions(dir, 0, log)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Close closes the generation.
func (r *Reader) Close() error { return r.db.Close() }

// Guard calls fn, which reads the generation at dir. If the disk fails under it, the error
// is ErrUnreadable.
func Guard(dir string, fn func() error) error { return unreadableOr(rawlog.Guard(dir, fn)) }

// Walk calls yield for the first part of every event from this sequence on, in order,
// until yield returns false. It reads keys only. Events that lack their first part are
// left out.
//
// An error means that the disk cannot be read.
func (r *Reader) Walk(from uint64, yield func(frame.EventKey) bool) error {
	return Guard(r.db.Opts().Dir, func() error {
		it := r.Events()
		defer it.Close()

		it.Seek(from)

		for k, ok := it.Next(); ok && yield(k); k, ok = it.Next() {
			// Past the first part, without reading the event.
			it.it.Next()
		}
		return nil
	})
}

// Iterator goes through the events of a generation. Not safe for concurrent use.
type Iterator struct {
	txn *badger.Txn
	it  *badger.Iterator
}

// Events returns an iterator over the events; Seek before anything else, and Close it
// afterwards. Use it inside of Guard.
func (r *Reader) Events() Iterator {
	txn := r.db.NewTransaction(false)
	return Iterator{txn, txn.NewIterator(badger.IteratorOptions{})}
}

// Seek goes to the first event from this sequence on.
func (i Iterator) Seek(from uint64) { i.it.Seek(frame.SeekKey(from)) }

// Next returns the key of the next event, and reports false at the end. Until Read, it
// returns the same key again. Events that lack their first part are left out.
func (i Iterator) Next() (k frame.EventKey, ok bool) {
	for ; i.it.Valid(); i.it.Next() {
		k, ok = frame.DecodeEventKey(i.it.Item().Key())
		if ok && k.Part == 0 {
			return k, true
		}
	}
	return k, false
}

// Close ends the iteration.
func (i Iterator) Close() {
	// In this order: Badger panics when a transaction ends before its iterators.
	i.it.Close()
	i.txn.Discard()
}

// Read returns the data of the event whose key Next returned, and passes over it.
//
// Every frame is verified. The data belongs to the caller. An error means that the event
// is damaged, and the next one can be read.
func (i Iterator) Read(k frame.EventKey) ([]byte, error) {
	it := i.it
	var data []byte
	var damage error
	parts := 0

	// Continue after damage: the iterator has to get past the event in any case.
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
				data = make([]byte, 0, min(k.Bytes, CommitBytesMax))
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

// mapped is the files that Badger writes through mappings, to sync them after a commit.
//
// Badger could sync them itself, with SyncWrites. But its msync does not empty the cache of a
// Mac's disk, and does nothing on Windows. On Linux it is slower than an fdatasync: see
// "Measurements" in package queue.
type mapped []disk.Mapped

// openMapped opens the files of a new database: one value log and one write-ahead log,
// see reserve. They are synced in this order.
func openMapped(db *badger.DB) (m mapped, err error) {
	maps := mappings(db)
	for i, suffix := range []string{".vlog", ".mem"} {
		paths, err := filesBySuffix(db.Opts().Dir, suffix)
		if err != nil {
			return m, err
		}

		for _, path := range paths {
			file, err := disk.OpenMapped(path, maps[i])
			if err != nil {
				return m, err
			}
			m = append(m, file)
		}
	}

	return m, nil
}

// sync returns when everything written is on the disk.
func (m mapped) sync() error {
	for _, file := range m {
		if err := file.Sync(); err != nil {
			return err
		}
	}

	return nil
}

func (m mapped) close() error {
	var errs []error
	for _, file := range m {
		errs = append(errs, file.Close())
	}

	return errors.Join(errs...)
}

// mappings returns the memory through which Badger writes the value log and the write-ahead
// log of a new database. Windows syncs a mapping only by its address, for which Badger has
// no method.
func mappings(db *badger.DB) [2][]byte {
	of := func(log reflect.Value) []byte {
		return log.Elem().FieldByName("MmapFile").Elem().FieldByName("Data").Bytes()
	}

	fields := reflect.ValueOf(db).Elem()
	valueLogs := fields.FieldByName("vlog").FieldByName("filesMap").MapRange()
	valueLogs.Next()

	return [2][]byte{of(valueLogs.Value()), of(fields.FieldByName("mt").Elem().FieldByName("wal"))}
}
