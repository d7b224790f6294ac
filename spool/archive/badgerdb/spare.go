package badgerdb

import (
	"reflect"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
)

// spare is the memory that Badger keeps of builders of tables, to use it again. It keeps that of eight, takes them by turns, and each
// is in the end as large as the largest table's was, which is that of a whole memtable: some 400 MB, of which few are ever in
// use. It lets go of one in two seconds, but only while no table is made. With a limit of memory that lies below it, the runtime then
// collects garbage without end: more than a third of all processor time.
//
// There is no option for it, and its field is private. So this reads the field, once, before anybody could change it, and then
// calls what is public.
type spare struct{ pool *z.AllocatorPool } // nil: another Badger, without one

func spareOf(bdb *badger.DB) spare {
	field := reflect.ValueOf(bdb).Elem().FieldByName("allocPool")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*z.AllocatorPool]() {
		return spare{}
	}
	return spare{(*z.AllocatorPool)(field.UnsafePointer())}
}

// freshBytes is the size of an allocator that the pool makes because it has none. Those of builders are far larger.
const freshBytes = 512

// letGo takes all that lies spare out of the pool, for the collector of garbage, and tells how much it was. Nobody may close the
// database meanwhile.
func (s spare) letGo() (bytes uint64) {
	if s.pool == nil {
		return 0
	}
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
