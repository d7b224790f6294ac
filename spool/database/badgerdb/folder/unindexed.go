package folder

import (
	"encoding/binary"

	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/proto"
)

// The index of a table says where its blocks are. Where the disk cannot read it, they are
// found by their own content: they follow each other from the start of the file, each
// packed by Snappy. Unpacked, a block of Badger 4.9.6 (table/builder.go) is:
//
//	entries        how many bytes of the first key the key begins with, how many follow (two
//	               bytes each), these, and the value
//	offsets        of the entries, four bytes each, and their number, four bytes
//	checksum       of the above, as protobuf, and its length, four bytes

// addUnindexed adds the blocks of a table up to the first one that does not verify.
func addUnindexed(b *table.Builder, data []byte) {
	for {
		end := packedBytes(data)
		block, err := snappy.Decode(nil, data[:end])
		if err != nil || addPlainBlock(b, block) != nil {
			return
		}
		data = data[end:]
	}
}

// packedBytes returns the length of the packed block that data begins with, or 0 if there
// is none. Its format says how long it is unpacked, and how much of that each piece is.
func packedBytes(data []byte) int {
	left, at := binary.Uvarint(data)
	for left > 0 && at > 0 && at+5 <= len(data) {
		n := uint64(data[at] >> 2) // of the unpacked bytes, less one, as far as it fits
		switch data[at] & 3 {
		case 0: // they follow
			at++
			if more := int(n) - 59; more > 0 { // bytes of the length
				n = uint64(binary.LittleEndian.Uint32(data[at:])) & (1<<(8*more) - 1)
				at += more
			}
			at += int(n) + 1
		case 1: // a copy of earlier ones, as below
			n = n&7 + 3
			at += 2
		case 2:
			at += 3
		case 3:
			at += 5
		}

		if n >= left {
			break
		}
		left -= n + 1
	}

	if left > 0 || at > len(data) {
		return 0
	}
	return max(at, 0)
}

// addPlainBlock adds the entries of one block, if it verifies.
func addPlainBlock(b *table.Builder, block []byte) error {
	if len(block) < 8 {
		return errNoTable
	}
	cut := func(n uint32) []byte {
		keep := max(0, len(block)-int(n)) // it may be garbage until the block is verified
		part := block[keep:]
		block = block[:keep]
		return part
	}

	var sum pb.Checksum
	err := proto.Unmarshal(cut(binary.BigEndian.Uint32(cut(4))), &sum)
	if err != nil || sum.Algo != pb.Checksum_CRC32C {
		return errNoTable
	}
	if err := y.VerifyChecksum(block, &sum); err != nil {
		return err
	}

	offsets := cut(4 * binary.BigEndian.Uint32(cut(4)))
	var first []byte // key
	for i := 0; i < len(offsets); i += 4 {
		end := uint32(len(block))
		if i+4 < len(offsets) {
			end = binary.LittleEndian.Uint32(offsets[i+4:])
		}
		e := block[binary.LittleEndian.Uint32(offsets[i:]):end]

		shared, rest := binary.LittleEndian.Uint16(e), binary.LittleEndian.Uint16(e[2:])
		key := append(first[:shared:shared], e[4:4+rest]...)
		if i == 0 {
			first = key
		}

		var value y.ValueStruct
		value.Decode(e[4+rest:])
		b.Add(key, value, 0)
	}
	return nil
}
