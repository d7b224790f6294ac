package badgerdb

import (
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/badgerdb/blocks"
)

// Tables of an account; see the layout in doc.go.
const (
	tableRecord    = 'r'
	tableDelta     = 'e'
	tableBody      = 'b'
	tableTime      = 't'
	tableLate      = 'u'
	tableBlock     = 'd'
	tableColumn    = 'k'
	tableCount     = 'n'
	tableTombstone = 'x'
	tableSelector  = 'y'
	tableHidden    = 'p'
	tableOrphan    = 'o'
	tableSpan      = 'g'
	tableTrace     = 'j'
	tableLink      = 'q'
)

// What a key begins with.
const (
	ofServer  = 0
	ofAccount = 1
	ofKind    = 2
)

// accountMax is the longest id that the length byte of a key allows.
const accountMax = 255

// keys is what all keys of one account begin with. Its methods return its keys.
type keys string

// keysOf returns the keys of an account.
func keysOf(account string) (keys, error) {
	// No account has an empty id: whoever passes one has lost it.
	if account == "" || len(account) > accountMax {
		return "", wire.Errorf(wire.CodeInternal, "An account's id must have 1 to %d bytes.", accountMax)
	}
	return keys([]byte{ofAccount, byte(len(account))}) + keys(account), nil
}

// table returns what all keys of a table begin with, with capacity for the longest fixed
// rest.
func (k keys) table(table byte) []byte {
	return append(append(make([]byte, 0, len(k)+1+32), k...), table)
}

func (k keys) record(id uuid) []byte { return append(k.table(tableRecord), id[:]...) }

func (k keys) body(id, event uuid) []byte {
	return append(append(k.table(tableBody), id[:]...), event[:]...)
}

func (k keys) count() []byte { return k.table(tableCount) }

func (k keys) orphan(id uuid) []byte { return append(k.table(tableOrphan), id[:]...) }

// placeOf returns the place of a position in a list. ok is false if its id is not a UUID.
func placeOf(p query.Position) ([]byte, bool) {
	id, ok := parseUUID(p.RequestID)
	return blocks.EncodePlace(p.At, id), ok
}

// accountOf splits a key of an account into its account's keys, the table and the rest.
func accountOf(key []byte) (k keys, table byte, rest []byte) {
	n := 2 + int(key[1])
	return keys(key[:n]), key[n], key[n+1:]
}

// eraseKey exists while something that was deleted may still be in the files.
var eraseKey = []byte{ofServer, 'x'}

// uuid is an id as in a key.
type uuid = archive.UUID

func parseUUID(s string) (uuid, bool) { return archive.ParseUUID(s) }

// goneRow is the value of a row that was deleted but is still in a block: it hides that
// one.
var goneRow = []byte{0}

// mark is the value of the two keys where the first block begins, among the rows that
// stand alone. Behind them are only Badger's tombstones of packed rows, which a walk has
// to pass one by one until Badger has compacted them away. An iterator reads one key
// ahead, so with two marks it never gets there.
var mark = []byte{1}
