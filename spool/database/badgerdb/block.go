package badgerdb

import (
	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/database/badgerdb/blocks"
	"promptspool/spool/database/compress"
)

// block is a block with the transaction that it is read in.
type block struct {
	blocks.Block

	txn   *badger.Txn
	codec *compress.Codec
	keys  keys
}

// open moves on to another block; see blocks.Block.
func (b *block) open(place []byte, head blocks.Head) { b.Open(b, place, head) }

// Read reads a part of the block at a place; see blocks.Reader.
func (b *block) Read(place []byte, part blocks.Part, buffer []byte) ([]byte, error) {
	return readPacked(b.txn, b.codec, b.keys.part(place, part), buffer)
}

// Damaged names the key of a part that cannot be decoded; see blocks.Reader.
func (b *block) Damaged(place []byte, part blocks.Part, cause error) error {
	return damaged(b.keys.part(place, part), cause)
}

// readSummary reads the block's summary, into buffer if that has room. Without one it is
// empty.
func (b *block) readSummary(buffer []byte) ([]byte, error) {
	return b.Read(b.Place, blocks.Summary, buffer)
}

// writeBlock returns the writes of a block at a place. There must be rows, in order.
func writeBlock(c *compress.Codec, k keys, place []byte, rows []blocks.Placed) []write {
	head := blocks.HeadOf(rows)
	writes := []write{
		{k.block(place), head.Encode()},
		{k.newest(place), mark},
		{k.behind(place), mark},
	}

	blocks.Encode(&head, rows, func(part blocks.Part, plain []byte) {
		var value []byte
		if part == blocks.Summary {
			// Not packed: unpacking it would take as long as merging it.
			value = compress.Plain(plain)
		} else {
			value = c.Column(plain)
		}

		writes = append(writes, write{k.part(place, part), value})
	})

	return writes
}

// removeBlock returns the writes that delete a block.
func (k keys) removeBlock(place []byte, head *blocks.Head) []write {
	writes := []write{
		{key: k.block(place)},
		{key: k.newest(place)},
		{key: k.behind(place)},
	}
	for _, part := range head.Parts() {
		writes = append(writes, write{key: k.part(place, part)})
	}
	return writes
}

// block returns the key of a block's head.
func (k keys) block(place []byte) []byte { return append(k.table(tableBlock), place...) }

// part returns the key of a part of a block.
func (k keys) part(place []byte, part blocks.Part) []byte {
	return part.AppendTo(append(k.table(tableColumn), place...))
}
