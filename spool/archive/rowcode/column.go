package rowcode

// Column is a part of a row that a filter or a statistic may need, so that a store reads no more of its rows than that.
type Column uint8

// The columns. ColumnBody is not of the row: it stands for the request's body.
const (
	ColumnID Column = iota
	ColumnTime
	ColumnFunction
	ColumnModel
	ColumnProvider
	ColumnStatus
	ColumnSidecar
	ColumnTemplate
	ColumnVersion
	ColumnLabel
	ColumnTags
	ColumnGroups
	ColumnMetadata
	ColumnScores
	ColumnInputTokens
	ColumnOutputTokens
	ColumnCost
	ColumnStart
	ColumnEnd
	ColumnLatency
	ColumnCachedTokens
	ColumnReasoningTokens
	ColumnFinish
	ColumnErrorType
	ColumnTools
	ColumnTurns
	ColumnShape
	ColumnReadable
	ColumnBody
	columnsEnd
)

// Columns is a set of columns.
type Columns uint64

// AllColumns are those of a whole row.
const AllColumns Columns = 1<<ColumnBody - 1

// ColumnsOf makes a set.
func ColumnsOf(columns ...Column) (s Columns) {
	for _, c := range columns {
		s |= 1 << c
	}
	return s
}

// Has says whether c is in the set.
func (s Columns) Has(c Column) bool { return s&(1<<c) != 0 }

// PlaceColumns are told by the place of a row.
const PlaceColumns = 1<<ColumnID | 1<<ColumnTime
