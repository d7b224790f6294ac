package rowcode

// Column is a part of a row. A store reads no more columns than a question needs.
type Column uint8

// The columns. ColumnTime is the list time, ColumnAccepted the order time. ColumnBody is no
// part of the row: it stands for the request's body.
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
	ColumnAccepted
	ColumnBody
	columnsEnd
)

// Columns is a set of columns.
type Columns uint64

// AllColumns holds those of a whole row.
const AllColumns Columns = 1<<ColumnBody - 1

// ColumnsOf returns a set of columns.
func ColumnsOf(columns ...Column) (s Columns) {
	for _, c := range columns {
		s |= 1 << c
	}
	return s
}

// Has reports whether c is in the set.
func (s Columns) Has(c Column) bool { return s&(1<<c) != 0 }

// PlaceColumns holds those that the position of a row tells.
const PlaceColumns = 1<<ColumnID | 1<<ColumnTime
