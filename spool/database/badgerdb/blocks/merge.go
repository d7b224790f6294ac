package blocks

import (
	"bytes"

	"promptspool/spool/archive/rowcode"
)

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
