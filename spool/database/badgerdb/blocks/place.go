package blocks

import (
	"bytes"
	"encoding/binary"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// PlaceBytes is the length of a place.
const PlaceBytes = 12 + 16

// Place is where a row is in its account's list, as in a key: its time and its id. Sorted
// by their bytes, places begin with the newest.
type Place [PlaceBytes]byte

// EncodePlace returns the place of a row.
func EncodePlace(at time.Time, id [16]byte) []byte {
	// With the sign bit turned, years before 1970 sort as well.
	seconds := ^(uint64(at.Unix()) ^ 1<<63)
	key := binary.BigEndian.AppendUint64(make([]byte, 0, PlaceBytes), seconds)
	key = binary.BigEndian.AppendUint32(key, ^uint32(at.Nanosecond()))

	for _, b := range id {
		key = append(key, ^b)
	}
	return key
}

// DecodePlace reads the time and the id from a place, or from a key that ends in one.
func DecodePlace(key []byte) (at time.Time, id [16]byte) {
	key = key[len(key)-PlaceBytes:]

	seconds := int64(^binary.BigEndian.Uint64(key) ^ 1<<63)
	at = time.Unix(seconds, int64(^binary.BigEndian.Uint32(key[8:]))).UTC()
	for i := range id {
		id[i] = ^key[12+i]
	}
	return at, id
}

// Placed is a row with its place, as in a key.
type Placed struct {
	Place Place
	Row   wire.Row
}

// Weight returns the weight of all rows together.
func Weight(rows []Placed) (n int) {
	for i := range rows {
		n += rowcode.Weight(&rows[i].Row)
	}
	return n
}

// Merge returns the block's rows without the hidden ones, together with those that stand
// alone. alone is in order.
func (b *Block) Merge(alone []Placed, hidden map[Place]bool) ([]Placed, error) {
	ids, err := b.Places()
	if err != nil {
		return nil, err
	}

	rows := make([]Placed, 0, b.Head.Rows+len(alone))
	for i := range b.Head.Rows {
		p := ids.At(i)
		for len(alone) > 0 && bytes.Compare(alone[0].Place[:], p[:]) < 0 {
			rows, alone = append(rows, alone[0]), alone[1:]
		}

		// Its newer form is among alone, or it was deleted.
		if hidden[p] {
			continue
		}
		row, err := b.Row(i, rowcode.AllColumns)
		if err != nil {
			return nil, err
		}

		// The block lends its row until the next call.
		rows = append(rows, Placed{p, rowcode.Clone(row)})
	}

	return append(rows, alone...), nil
}
