package blocks

import (
	"slices"

	"github.com/google/uuid"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Row returns a row with the wanted columns. It is lent until the next call. Columns that
// were not wanted keep what an earlier row had.
func (b *Block) Row(i int, want rowcode.Columns) (*wire.Row, error) {
	// The same row each time: one for each match would be most of a scan's garbage.
	row := &b.scratch.row
	for c := rowcode.ColumnID; c < rowcode.ColumnBody; c++ {
		// The place of a row is filled in once: its id takes longer than all else.
		if !want.Has(c) || c == rowcode.ColumnTime && want.Has(rowcode.ColumnID) {
			continue
		}
		if err := b.fill(i, c, row); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// fill fills in one column of a row.
func (b *Block) fill(i int, of rowcode.Column, row *wire.Row) error {
	switch of {
	case rowcode.ColumnMetadata:
		return b.fillMetadata(i, row)
	case rowcode.ColumnScores:
		return b.fillScores(i, row)
	}
	// The same column has both.
	if of == rowcode.ColumnTime {
		of = rowcode.ColumnID
	}

	// The order time is the list time, unless the column has another.
	if of == rowcode.ColumnAccepted {
		if err := b.fillAccepted(i, row); err != nil {
			return err
		}
	}

	c, err := b.column(of)
	if err != nil {
		return err
	}

	switch c.kind {
	case 'p':
		p := c.place(i)
		at, id := DecodePlace(p[:])

		// Both fields hold the id, and share one string.
		row.ListTime, row.RequestID = at, uuid.UUID(id).String()
		row.ID = row.RequestID
		return nil
	case 'i':
		n, ok := c.number(i)
		rowcode.LendInteger(of, n, ok, row, &b.scratch.cells[of])
		return nil
	}

	// All rows with this value share the decoded entry, so a lent row must not be
	// changed.
	entry, err := c.entry(of, c.code(i))
	if err != nil {
		return err
	}
	rowcode.Share(of, entry, row)

	return nil
}

// fillAccepted sets the order time to the list time.
func (b *Block) fillAccepted(i int, row *wire.Row) error {
	ids, err := b.column(rowcode.ColumnID)
	if err != nil {
		return err
	}
	p := ids.place(i)
	row.AcceptedAt, _ = DecodePlace(p[:])

	return nil
}

// fillMetadata merges a row's keys, sorted: those with their own column, and the
// others.
func (b *Block) fillMetadata(i int, row *wire.Row) error {
	rest, err := b.column(rowcode.ColumnMetadata)
	if err != nil {
		return err
	}
	others, err := rest.entry(rowcode.ColumnMetadata, rest.code(i))
	if err != nil {
		return err
	}

	all := b.scratch.metadata[:0]
	for _, key := range b.Head.keys {
		c, err := b.metadata(key)
		if err != nil {
			return err
		}

		// An own column has an entry for the rows that lack the key, too.
		if value, ok := c.text(i); ok {
			all = append(all, wire.MetadataRow{Key: key, Value: value})
		}
	}
	all = withOthers(all, others.Metadata, rowcode.CompareMetadata)
	b.scratch.metadata, row.Metadata = all, all
	return nil
}

// withOthers adds what the shared column has to what own columns have, sorted. A row with nothing has
// an empty list, in JSON as well.
func withOthers[T any](all, others []T, compare func(a, b T) int) []T {
	if all == nil {
		all = []T{}
	}
	if all = append(all, others...); len(others) > 0 {
		slices.SortStableFunc(all, compare)
	}

	return all
}

// fillScores merges a row's scores, as fillMetadata does its keys.
func (b *Block) fillScores(i int, row *wire.Row) error {
	rest, err := b.column(rowcode.ColumnScores)
	if err != nil {
		return err
	}
	others, err := rest.entry(rowcode.ColumnScores, rest.code(i))
	if err != nil {
		return err
	}

	if err := b.ownScores(i, 0, len(b.Head.slots), row); err != nil {
		return err
	}
	row.Scores = withOthers(row.Scores, others.Scores, wire.CompareScores)
	b.scratch.scores = row.Scores
	return nil
}

// ownScores fills in the scores in some of Head.slots.
func (b *Block) ownScores(i, from, to int, row *wire.Row) error {
	row.Scores = b.scratch.scores[:0]
	for at := from; at < to; at++ {
		c, err := b.scores(at)
		if err != nil {
			return err
		}
		value, ok, err := c.score(i)
		if err != nil {
			return err
		}
		if ok {
			row.Scores = append(row.Scores, wire.Score{ScoreSlot: b.Head.slots[at], ScoreValue: value})
		}
	}
	b.scratch.scores = row.Scores

	return nil
}
