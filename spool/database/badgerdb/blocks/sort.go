package blocks

import (
	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Within returns the rows of the block that may enter a page by their value. It reads no
// column if the head rules them out.
func (b *Block) Within(bounds query.SortBounds) (Bits, error) {
	n := b.Head.Rows
	of := bounds.Order.Column()
	if least, most, known := b.Head.secondsOf(of, b.Place); known {
		// Times are sorted by the microsecond, so a second has a million values.
		if !bounds.MayHave(float64(least)*1e6, float64(most+1)*1e6) {
			return newBits(n, false), nil
		}
	}

	switch of {
	// Neither is a column with the value of each row.
	case rowcode.ColumnTime, rowcode.ColumnAccepted:
		return newBits(n, true), nil
	case rowcode.ColumnScores:
		name, _ := bounds.Order.Score()
		return b.testScores(name, bounds.Has)
	}

	c, err := b.column(of)
	if err != nil {
		return nil, err
	}
	if c.kind == 'i' {
		return c.numbersWithin(of, bounds), nil
	}

	rows, entries := newBits(n, false), make([]bool, len(c.entries))
	for i := range entries {
		row, err := c.entry(of, i)
		if err != nil {
			return nil, err
		}
		entries[i] = bounds.Has(row)
	}
	c.mark(entries, rows)

	return rows, nil
}

// secondsOf returns the least and the most of a column of times. known is false for other
// columns, and where no row has one.
func (h *Head) secondsOf(of rowcode.Column, place []byte) (least, most int64, known bool) {
	switch of {
	case rowcode.ColumnTime:
		newest, _ := DecodePlace(place)
		return h.Oldest, newest.Unix(), true
	case rowcode.ColumnAccepted:
		return h.accepted[0], h.accepted[1], true
	case rowcode.ColumnStart:
		return h.startMin, h.startMax, h.startMin <= h.startMax
	}
	return 0, 0, false
}

// numbersWithin is Within for a column of numbers.
func (c *column) numbersWithin(of rowcode.Column, bounds query.SortBounds) Bits {
	rows := newBits(c.n, false)
	unknown := bounds.Has(&wire.Row{})

	// Sort values grow with the number, or stay. So the numbers that may enter are all
	// from one to another, and only those two are looked for, not tested row by row.
	most := uint64(0)
	for i := range c.n {
		most = max(most, c.offset(i))
	}
	var row wire.Row
	var kept rowcode.Cell
	value := func(offset uint64) query.SortValue {
		rowcode.LendInteger(of, int64(uint64(c.least)+offset), true, &row, &kept)
		return bounds.Order.PositionOf(&row).Value
	}
	below, above := bounds.Before, bounds.Behind
	if !bounds.Order.Ascending {
		below, above = above, below
	}
	low, some := search(most, func(n uint64) bool { return !below(value(n)) })
	high, bound := search(most, func(n uint64) bool { return above(value(n)) })
	if !some && !unknown {
		return rows
	}

	for i := range c.n {
		has, n := c.has(i), c.offset(i)
		if has && some && n >= low && (n < high || !bound) || !has && unknown {
			rows.set(i)
		}
	}

	return rows
}

// search returns the first number up to most for which ok holds, as it does for all later
// ones. found is false if there is none.
func search(most uint64, ok func(n uint64) bool) (first uint64, found bool) {
	if !ok(most) {
		return 0, false
	}

	low, high := uint64(0), most
	for low < high {
		if mid := low + (high-low)/2; ok(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low, true
}
