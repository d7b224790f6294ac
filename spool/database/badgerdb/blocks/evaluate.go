package blocks

import (
	"bytes"
	"slices"
	"sort"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Verdict tells for which rows of a block a condition certainly holds, and for which it
// may. They differ where only the body can decide.
type Verdict struct{ Must, May Bits }

// Evaluate returns which rows of the block may match a query.
func (b *Block) Evaluate(q *query.Query) (v Verdict, err error) {
	// If no row starts or came within the span that the query asks for, no column need be read.
	from, to := q.StartSpan()
	first, last := q.AcceptedSpan()
	if !b.Head.mayStart(from, to) || !b.Head.mayBeAccepted(first, last) {
		none := newBits(b.Head.Rows, false)
		return Verdict{none, none}, nil
	}

	if q.Where == nil {
		every := newBits(b.Head.Rows, true)
		return Verdict{every, every}, nil
	}
	v = b.evaluate(q.Where)

	return v, b.err
}

// evaluate tests a condition on all rows of a block, column by column.
func (b *Block) evaluate(c query.Condition) (v Verdict) {
	n := b.Head.Rows
	switch c := c.(type) {
	case query.All:
		// Into its own bits: a part may use the same ones for must and may.
		v = Verdict{newBits(n, true), newBits(n, true)}
		for _, part := range c {
			w := b.evaluate(part)
			for i := range v.May {
				v.Must[i] &= w.Must[i]
				v.May[i] &= w.May[i]
			}
			if v.May.next(0) < 0 {
				// Nothing is left to ask about.
				return v
			}
		}
		return v
	case query.Any:
		v = Verdict{newBits(n, false), newBits(n, false)}
		for _, part := range c {
			w := b.evaluate(part)
			for i := range v.May {
				v.Must[i] |= w.Must[i]
				v.May[i] |= w.May[i]
			}
		}
		return v
	case query.Not:
		w := b.evaluate(c.Condition)
		v = Verdict{newBits(n, true), newBits(n, true)}

		// Rows for which it may hold may not be excluded, and those for which it must
		// hold are excluded.
		for i := range v.May {
			v.Must[i] &^= w.May[i]
			v.May[i] &^= w.Must[i]
		}
		return v
	}

	return b.test(c.(*query.Test))
}

// test tests a condition on one field.
func (b *Block) test(t *query.Test) Verdict {
	n := b.Head.Rows
	// No column has bodies: any row may match, and none certainly does.
	if t.Column == rowcode.ColumnBody {
		return Verdict{newBits(n, false), newBits(n, true)}
	}

	holds := newBits(n, false)
	if t.Column == rowcode.ColumnTags && t.Texts != nil && !slices.ContainsFunc(t.Texts, b.Head.mayHaveTag) {
		return Verdict{holds, holds}
	}

	// A metadata key has its own dictionary, or shares one.
	if keyColumn := b.ofKey(t); keyColumn != nil {
		return b.testEntries(t, keyColumn)
	}

	if t.Column == rowcode.ColumnScores {
		holds = b.testScores(t.Key, func(row *wire.Row) bool { return t.Match(&query.Subject{Row: row}) })
		return Verdict{holds, holds}
	}

	switch t.Column {
	// These are tested row by row: none is a column with the value of each row.
	case rowcode.ColumnMetadata, rowcode.ColumnID, rowcode.ColumnTime, rowcode.ColumnAccepted:
	default:
		switch c := b.column(t.Column); {
		case c.kind == 'd':
			return b.testEntries(t, c)
		case t.Number != nil:
			b.testNumbers(t, c, holds)
			return Verdict{holds, holds}
		}
	}

	if t.Column == rowcode.ColumnTime && !(t.From.IsZero() && t.To.IsZero()) {
		b.testSpan(t, holds)
		return Verdict{holds, holds}
	}

	// Everything else is tested row by row.
	want := rowcode.ColumnsOf(t.Column)
	for i := range n {
		if row, _ := b.Row(i, want); t.Match(&query.Subject{Row: row}) {
			holds.set(i)
		}
	}

	return Verdict{holds, holds}
}

// testScores tests each row by its scores. If they are of one name, it reads no others.
func (b *Block) testScores(name string, test func(row *wire.Row) bool) Bits {
	holds := newBits(b.Head.Rows, false)
	from, to := b.Head.slotsOf(name)
	for i := range b.Head.Rows {
		row := &b.scratch.row
		if from == to {
			// Also those that share a column.
			b.fillScores(i, row)
		} else {
			b.ownScores(i, from, to, row)
		}
		if test(row) {
			holds.set(i)
		}
	}

	return holds
}

// testSpan tests a span of time. Rows are in the order of their times, so it searches for
// both ends; only the rows at the ends are tested.
func (b *Block) testSpan(t *query.Test, holds Bits) {
	ids := b.column(rowcode.ColumnID)
	at := func(i int) time.Time {
		p := ids.place(i)
		at, _ := DecodePlace(p[:])
		return at
	}
	match := func(i int) bool {
		return t.Match(&query.Subject{Row: &wire.Row{ListTime: at(i)}})
	}

	// The newest rows come first.
	begin, end := 0, b.Head.Rows
	if !t.To.IsZero() {
		begin = sort.Search(end, func(i int) bool { return !at(i).After(t.To) })
	}
	if !t.From.IsZero() {
		end = sort.Search(end, func(i int) bool { return at(i).Before(t.From) })
	}

	// Whether the ends themselves belong to the span, the test knows.
	for begin < end && !match(begin) {
		begin++
	}
	for begin < end && !match(end-1) {
		end--
	}

	for i := begin; i < end; i++ {
		holds.set(i)
	}
}

// ofKey returns the column of the metadata key or the score that a test is about. A key without its
// own column is in the shared one. It is nil if no dictionary decides the test.
func (b *Block) ofKey(t *query.Test) *column {
	if t.Column == rowcode.ColumnScores {
		from, to := b.Head.slotsOf(t.Key)
		switch {
		case len(b.Head.slots) == 0, t.Key != "" && from == to:
			return b.column(rowcode.ColumnScores)
		case t.Key == "", to-from > 1:
			return nil
		}
		if c := b.scores(from); c.kind == 'd' {
			return c
		}
		return nil
	}
	if t.Column != rowcode.ColumnMetadata || t.Key == "" {
		return nil
	}

	if c := b.metadata(t.Key); c != nil {
		return c
	}
	return b.column(rowcode.ColumnMetadata)
}

// testEntries tests each entry of a dictionary once, instead of each row.
func (b *Block) testEntries(t *query.Test, c *column) (v Verdict) {
	// The same bits for both, as long as no entry leaves a doubt.
	v.Must = newBits(b.Head.Rows, false)
	v.May = v.Must

	found := make([]bool, len(c.entries))
	unsure := make([]bool, len(c.entries))
	some, doubt := false, false
	// The column that the other keys share has pairs as entries, an own one only values.
	ask := asker{
		test:   t,
		column: c,
		oneKey: t.Column == rowcode.ColumnMetadata && c != &b.columns[rowcode.ColumnMetadata].column,
	}
	// These are in an entry as they are, and a block may have thousands of them.
	verbatim := t.Texts != nil &&
		(t.Column == rowcode.ColumnTags || t.Column == rowcode.ColumnTrace || ask.oneKey)
	for i, entry := range c.entries {
		has := func(text string) bool { return bytes.Contains(entry, []byte(text)) }
		if verbatim && !slices.ContainsFunc(t.Texts, has) {
			continue
		}
		found[i], unsure[i] = ask.about(i)
		some = some || found[i]
		doubt = doubt || unsure[i]
	}

	if some {
		c.mark(found, v.Must)
	}
	// Only the whole of a long value can decide.
	if doubt {
		v.May = slices.Clone(v.Must)
		c.mark(unsure, v.May)
	}

	return v
}

// mark sets the rows that have one of the given entries.
func (c *column) mark(entries []bool, rows Bits) {
	// The usual width, without a call for each row.
	if c.width == 1 {
		for i, code := range c.codes {
			if entries[code] {
				rows.set(i)
			}
		}
		return
	}

	for i := range c.n {
		if entries[c.code(i)] {
			rows.set(i)
		}
	}
}

// asker tests the entries of a dictionary. Its memory is used again for each entry.
type asker struct {
	test   *query.Test
	column *column
	oneKey bool // the column is that of the metadata key that the test is about

	row      wire.Row
	metadata [1]wire.MetadataRow
	subject  query.Subject
}

// about tests entry i. unsure means that only the whole of a long value can decide.
func (a *asker) about(i int) (holds, unsure bool) {
	row := &a.row
	if a.oneKey {
		// No bytes: the rows of this entry lack the key. Otherwise one byte comes first.
		entry := a.column.entries[i]
		row.Metadata = nil
		if len(entry) > 0 {
			a.metadata[0] = wire.MetadataRow{Key: a.test.Key, Value: string(entry[1:])}
			row.Metadata = a.metadata[:]
		}
	} else {
		row = a.column.entry(a.test.Column, i)
	}

	a.subject = query.Subject{Row: row}
	holds = a.test.Match(&a.subject)

	return holds, a.subject.Unsure
}

// testNumbers tests each number of a column.
func (b *Block) testNumbers(t *query.Test, c *column, holds Bits) {
	// t.Number takes a slice, and one for each row would be garbage.
	var one [1]float64
	// This holds for rows without a number.
	none := t.Number(nil)

	// Few different ones, such as versions: each is tested once.
	if c.width == 1 {
		// A width of 1 means at most 256 different numbers.
		// Testing those that do not occur costs less than finding out which do.
		var found [256]bool
		for n := range found {
			one[0] = rowcode.Compared(t.Column, c.least+int64(n))
			found[n] = t.Number(one[:])
		}

		for i, n := range c.codes {
			if known := c.has(i); known && found[n] || !known && none {
				holds.set(i)
			}
		}
		return
	}

	for i := range c.n {
		n, ok := c.number(i)
		if !ok {
			if none {
				holds.set(i)
			}
			continue
		}

		one[0] = rowcode.Compared(t.Column, n)
		if t.Number(one[:]) {
			holds.set(i)
		}
	}
}

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
		return b.testScores(name, bounds.Has), b.err
	}

	c := b.column(of)
	if c.kind == 'i' {
		return c.numbersWithin(of, bounds), b.err
	}

	rows, entries := newBits(n, false), make([]bool, len(c.entries))
	for i := range entries {
		entries[i] = bounds.Has(c.entry(of, i))
	}
	c.mark(entries, rows)

	return rows, b.err
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
