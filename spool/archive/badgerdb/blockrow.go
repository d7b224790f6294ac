package badgerdb

import (
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// numbers are what a lent row points to.
type numbers struct {
	input, output     int64
	cached, reasoning int64
	version           int
	cost, latency     float64
	start, end        time.Time
}

// row fills in the columns that are wanted of a row, which is lent until the next call.
func (b *block) row(i int, want archive.Columns) (*wire.Row, error) {
	row := &b.scratch.row
	for c := archive.ColumnID; c < archive.ColumnBody; c++ {
		if !want.Has(c) {
			continue
		}
		if err := b.fill(i, c, row); err != nil {
			return nil, err
		}
	}
	return row, nil
}

func (b *block) fill(i int, of archive.Column, row *wire.Row) error {
	if of == archive.ColumnMetadata {
		return b.fillMetadata(i, row)
	}
	if of == archive.ColumnTime {
		of = archive.ColumnID
	}
	c, err := b.column(of)
	if err != nil {
		return err
	}
	switch c.kind {
	case 'p':
		p := c.place(i)
		at, id := rowPlace(p[:])
		row.AcceptedAt, row.RequestID = at, id.String()
		row.ID = row.RequestID
		return nil
	case 'i':
		n, ok := c.number(i)
		b.scratch.numbers.set(of, n, ok, row)
		return nil
	}
	entry, err := c.entry(of, c.code(i))
	if err != nil {
		return err
	}
	share(of, entry, row)
	return nil
}

// set lets a row's field point to a number.
func (n *numbers) set(of archive.Column, v int64, ok bool, row *wire.Row) {
	switch of {
	case archive.ColumnInputTokens:
		n.input, row.InputTokens = v, pointer(&n.input, ok)
	case archive.ColumnOutputTokens:
		n.output, row.OutputTokens = v, pointer(&n.output, ok)
	case archive.ColumnCachedTokens:
		n.cached, row.CachedTokens = v, pointer(&n.cached, ok)
	case archive.ColumnReasoningTokens:
		n.reasoning, row.ReasoningTokens = v, pointer(&n.reasoning, ok)
	case archive.ColumnTurns:
		if row.Turns = 0; ok {
			row.Turns = int(v)
		}
	case archive.ColumnReadable:
		row.Readable = ok
	case archive.ColumnVersion:
		n.version, row.PromptVersion = int(v), pointer(&n.version, ok)
	case archive.ColumnCost:
		n.cost, row.Price = dollarsOf(v), pointer(&n.cost, ok)
	case archive.ColumnLatency:
		n.latency, row.Latency = secondsOf(v), pointer(&n.latency, ok)
	case archive.ColumnStart:
		n.start, row.StartTime = time.Unix(0, v).UTC(), pointer(&n.start, ok)
	case archive.ColumnEnd:
		n.end, row.EndTime = time.Unix(0, v).UTC(), pointer(&n.end, ok)
	}
}

func pointer[T any](p *T, ok bool) *T {
	if !ok {
		return nil
	}
	return p
}

// share lets a row have what another has in a column.
func share(of archive.Column, from, row *wire.Row) {
	switch of {
	case archive.ColumnFunction:
		row.FunctionName = from.FunctionName
	case archive.ColumnModel:
		row.Engine = from.Engine
	case archive.ColumnProvider:
		row.Provider = from.Provider
	case archive.ColumnStatus:
		row.Status = from.Status
	case archive.ColumnSidecar:
		row.Sidecar = from.Sidecar
	case archive.ColumnTemplate:
		row.PromptName = from.PromptName
	case archive.ColumnVersion:
		row.PromptVersion = from.PromptVersion
	case archive.ColumnLabel:
		row.PromptLabel = from.PromptLabel
	case archive.ColumnTags:
		row.Tags = from.Tags
	case archive.ColumnGroups:
		row.GroupIDs = from.GroupIDs
	case archive.ColumnScores:
		row.Scores = from.Scores
	case archive.ColumnFinish:
		row.FinishReason = from.FinishReason
	case archive.ColumnErrorType:
		row.ErrorType = from.ErrorType
	case archive.ColumnShape:
		row.OutputShape = from.OutputShape
	case archive.ColumnTools:
		row.ToolNames = from.ToolNames
	case archive.ColumnCachedTokens:
		row.CachedTokens = from.CachedTokens
	case archive.ColumnReasoningTokens:
		row.ReasoningTokens = from.ReasoningTokens
	case archive.ColumnTurns:
		row.Turns = from.Turns
	case archive.ColumnReadable:
		row.Readable = from.Readable
	case archive.ColumnInputTokens:
		row.InputTokens = from.InputTokens
	case archive.ColumnOutputTokens:
		row.OutputTokens = from.OutputTokens
	case archive.ColumnCost:
		row.Price = from.Price
	case archive.ColumnLatency:
		row.Latency = from.Latency
	case archive.ColumnStart:
		row.StartTime = from.StartTime
	case archive.ColumnEnd:
		row.EndTime = from.EndTime
	}
}

// fillMetadata puts a row's keys together, sorted: those with a column of their own and the rest.
func (b *block) fillMetadata(i int, row *wire.Row) error {
	rest, err := b.column(archive.ColumnMetadata)
	if err != nil {
		return err
	}
	others, err := rest.entry(archive.ColumnMetadata, rest.code(i))
	if err != nil {
		return err
	}
	left := others.Metadata
	all := b.scratch.metadata[:0]
	for _, key := range b.head.keys {
		c, err := b.metadata(key)
		if err != nil {
			return err
		}
		value, ok := c.text(i)
		if !ok {
			continue
		}
		for len(left) > 0 && strings.Compare(left[0].Key, key) < 0 {
			all, left = append(all, left[0]), left[1:]
		}
		all = append(all, wire.MetadataRow{Key: key, Value: archive.Shortened(key, value)})
	}
	all = append(all, left...)
	if all == nil {
		all = []wire.MetadataRow{}
	}
	b.scratch.metadata, row.Metadata = all, all
	return nil
}

// text is what a row has in a column of texts that may be absent.
func (c *column) text(i int) (s string, ok bool) {
	entry := c.entries[c.code(i)]
	if len(entry) == 0 {
		return "", false
	}
	return string(entry[1:]), true
}
