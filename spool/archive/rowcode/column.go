package rowcode

import (
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/wire"
)

// Column is a part of a row. A store reads no more columns than a question needs.
type Column uint8

// The columns, in their order on disk: a new one goes before ColumnBody. ColumnTime is the list
// time, ColumnAccepted the order time. ColumnBody is not a part of the row: it means the
// request's body.
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
	ColumnTrace
	ColumnFirstToken
	ColumnText
	ColumnCacheWrites
	ColumnBody
	columnsEnd
)

// FirstColumns is how many columns the rows of 0.1.0 have. Those of later columns are absent
// in rows that were written before them, and in blocks of such rows.
const FirstColumns = ColumnText + 1

// Definition is everything particular about a column.
type Definition struct {
	// Fields are the names by which a filter asks for its value, by the peer's and ours. The
	// fields of a column without any, or with several values in one, are in package query.
	Fields []string

	// Normal returns the form of a text in which whole values are compared. It is of those that
	// are one of a few words, which providers and people write in different ways; nil for others.
	Normal func(string) string

	// SQL is the column of PostgreSQL that holds it as filters compare it; "" for none.
	SQL string

	value value // where a row has it; nil for what the place of a row tells
}

// definitions has an entry for each column. Blocks and rows on disk follow it.
var definitions = [columnsEnd]Definition{
	ColumnFunction: {Fields: []string{"function_name"},
		value: text(func(r *wire.Row) *string { return &r.FunctionName })},
	ColumnModel: {Fields: []string{"model", "engine"},
		value: text(func(r *wire.Row) *string { return &r.Engine })},
	ColumnProvider: {Fields: []string{"provider", "provider_type"}, Normal: strings.ToLower,
		value: text(func(r *wire.Row) *string { return &r.Provider })},
	ColumnStatus: {Fields: []string{"status"}, Normal: strings.ToLower,
		value: text(func(r *wire.Row) *string { return &r.Status })},
	ColumnSidecar: {Fields: []string{"sidecar"},
		value: text(func(r *wire.Row) *string { return &r.Sidecar })},
	ColumnTemplate: {Fields: []string{"prompt_name", "prompt_id"},
		value: optional(func(r *wire.Row) **string { return &r.PromptName })},
	ColumnVersion: {Fields: []string{"prompt_version_number"}, SQL: "version",
		value: integer(func(r *wire.Row) **int64 { return &r.PromptVersion })},
	ColumnLabel: {Fields: []string{"label"},
		value: optional(func(r *wire.Row) **string { return &r.PromptLabel })},

	// No tags are an empty list, no groups or tools nil.
	ColumnTags: {Fields: []string{"tags"},
		value: texts{of: func(r *wire.Row) *[]string { return &r.Tags }, none: []string{}}},
	ColumnGroups: {Fields: []string{"group_id"},
		value: texts{of: func(r *wire.Row) *[]string { return &r.GroupIDs }}},
	ColumnTools: {Fields: []string{"tool_names"},
		value: texts{of: func(r *wire.Row) *[]string { return &r.ToolNames }}},
	ColumnMetadata: {value: metadata{}},
	ColumnScores:   {value: scores{}},

	ColumnInputTokens: {Fields: []string{"input_tokens"}, SQL: "input_tokens",
		value: integer(func(r *wire.Row) **int64 { return &r.InputTokens })},
	ColumnOutputTokens: {Fields: []string{"output_tokens"}, SQL: "output_tokens",
		value: integer(func(r *wire.Row) **int64 { return &r.OutputTokens })},
	ColumnCachedTokens: {Fields: []string{"cached_tokens"}, SQL: "cached_tokens",
		value: integer(func(r *wire.Row) **int64 { return &r.CachedTokens })},
	ColumnCacheWrites: {Fields: []string{"cache_write_tokens"}, SQL: "cache_write_tokens",
		value: integer(func(r *wire.Row) **int64 { return &r.CacheWrites })},
	ColumnReasoningTokens: {Fields: []string{"reasoning_tokens"}, SQL: "reasoning_tokens",
		value: integer(func(r *wire.Row) **int64 { return &r.ReasoningTokens })},
	ColumnCost: {Fields: []string{"cost"}, SQL: "cost",
		value: number{func(r *wire.Row) **float64 { return &r.Price }, whole, asItIs}},
	ColumnLatency: {Fields: []string{"latency_ms"}, SQL: "latency",
		value: number{func(r *wire.Row) **float64 { return &r.Latency }, seconds, Milliseconds}},

	ColumnStart: {Fields: []string{"request_start_time"}, SQL: "start_at",
		value: moment(func(r *wire.Row) **time.Time { return &r.StartTime })},
	ColumnEnd: {Fields: []string{"request_end_time"},
		value: moment(func(r *wire.Row) **time.Time { return &r.EndTime })},
	ColumnAccepted: {Fields: []string{"accepted_at"}, value: accepted{}},

	ColumnFinish: {Fields: []string{"finish_reason"}, Normal: calls.NormalFinish,
		value: text(func(r *wire.Row) *string { return &r.FinishReason })},
	ColumnErrorType: {Fields: []string{"error_type"}, Normal: strings.ToLower,
		value: text(func(r *wire.Row) *string { return &r.ErrorType })},
	ColumnTrace: {Fields: []string{"trace_id"}, Normal: strings.ToLower,
		value: text(func(r *wire.Row) *string { return &r.TraceID })},
	ColumnFirstToken: {Fields: []string{"time_to_first_token_ms"}, SQL: "first_token",
		value: number{func(r *wire.Row) **float64 { return &r.FirstTokenMS }, whole, asItIs}},
	ColumnShape: {value: text(func(r *wire.Row) *string { return &r.OutputShape })},
	// A call without messages and one whose messages could not be read look the same.
	ColumnTurns:    {value: count(func(r *wire.Row) *int { return &r.Turns })},
	ColumnReadable: {value: flag(func(r *wire.Row) *bool { return &r.Readable })},
	ColumnText:     {value: count(func(r *wire.Row) *int { return &r.TextHash })},
}

// Define returns the definition of a column.
func Define(c Column) *Definition { return &definitions[c] }

// Columns is a set of columns, ColumnBody among them: at most 64. Rows and blocks on disk say how
// many columns they have, so it can grow to [2]uint64 once the next line no longer compiles.
type Columns uint64

const _ = 64 - columnsEnd // is negative from the 65th on

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
