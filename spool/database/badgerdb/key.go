package badgerdb

import (
	"encoding/binary"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
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
	tableSet       = 'm'
	tableRollup    = 's'
	tableWords     = 'w'
)

// The first byte of a key.
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
	// No account has an empty id: a caller that passes one has lost it.
	if account == "" || len(account) > accountMax {
		return "", wire.Errorf(wire.CodeInternal, "A project's id must have 1 to %d bytes.", accountMax)
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

// newest returns the key of a row that stands alone before the first block.
func (k keys) newest(place []byte) []byte { return append(k.table(tableTime), place...) }

// after returns the first key after newest.
func (k keys) behind(place []byte) []byte { return append(k.newest(place), 0) }

// late returns the key of a row that stands alone in a block's part of the list.
func (k keys) late(place []byte) []byte { return append(k.table(tableLate), place...) }

// block returns the key of a block's head.
func (k keys) block(place []byte) []byte { return append(k.table(tableBlock), place...) }

// part returns the key of a part of a block.
func (k keys) part(place []byte, part blocks.Part) []byte {
	return part.AppendTo(append(k.table(tableColumn), place...))
}

// span returns the key of a record that is only a span, by its place.
func (k keys) span(place []byte) []byte { return append(k.table(tableSpan), place...) }

// trace returns the key of a record that has a span of a trace.
func (k keys) trace(trace, id uuid) []byte {
	return append(append(k.table(tableTrace), trace[:]...), id[:]...)
}

// set returns the key of an archive.Set.
func (k keys) set(key uuid) []byte { return append(k.table(tableSet), key[:]...) }

// rollup returns the key of a roll-up.
func (k keys) rollup(kind rollup.Kind, name string) []byte {
	return append(append(k.table(tableRollup), byte(kind)), name...)
}

// deltas returns what the keys of all deltas of a record begin with.
func (k keys) deltas(id uuid) []byte { return append(k.table(tableDelta), id[:]...) }

func (k keys) delta(id uuid, after int) []byte {
	return binary.BigEndian.AppendUint32(k.deltas(id), uint32(after))
}

// deltaAfter reads archive.Delta.After from a key that delta returned.
func deltaAfter(key []byte) int { return int(binary.BigEndian.Uint32(key[len(key)-4:])) }

// hidden returns the key that finds a record by a metadata value that its row does not
// show.
func (k keys) hidden(hash [16]byte, id uuid) []byte {
	return append(append(k.table(tableHidden), hash[:]...), id[:]...)
}

// tombstone returns the key that keeps a deleted record out.
func (k keys) tombstone(id uuid) []byte { return append(k.table(tableTombstone), id[:]...) }

// selector returns the key that keeps out records with a metadata value; see
// rowcode.HashValue.
func (k keys) selector(hash [16]byte) []byte {
	return append(k.table(tableSelector), hash[:]...)
}

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
