package badgerdb

import (
	"reflect"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
)

// spare is the memory that Badger keeps of the builders of tables for reuse.
//
// Badger keeps the memory of eight builders and uses them in turn. Each grows to the size
// for the largest table, which is a whole memtable: some 400 MB, little of which is ever
// in use. Badger frees one every two seconds, but only while no table is being built.
// With a memory limit below that, the Go runtime would collect garbage endlessly, with
// more than a third of all processor time.
//
// There is no option for it, and the field is private. So this reads the field once,
// before anybody could change it, and then calls only what is public.
type spare struct{ pool *z.AllocatorPool } // nil: another version of Badger, without one

// spareOf returns the spare memory of a database that was just opened.
func spareOf(bdb *badger.DB) spare {
	field := reflect.ValueOf(bdb).Elem().FieldByName("allocPool")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*z.AllocatorPool]() {
		return spare{}
	}
	return spare{(*z.AllocatorPool)(field.UnsafePointer())}
}

// freshBytes is the size of an allocator that an empty pool makes. Those of builders are
// far larger.
const freshBytes = 512

// letGo removes all spare memory from the pool, for the garbage collector, and returns
// how much it was. The database must not be closed meanwhile.
func (s spare) letGo() (bytes uint64) {
	if s.pool == nil {
		return 0
	}

	// Until the pool is empty, which shows in a fresh allocator.
	for {
		a := s.pool.Get(freshBytes, "spare")
		n := a.Allocated()
		a.Release()

		if n <= freshBytes {
			return bytes
		}

		bytes += n
	}
}
