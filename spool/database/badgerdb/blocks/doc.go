// Package blocks is the column store of an account's list: it turns rows that follow each
// other into a block, and answers filters from the block's columns.
//
// It knows neither transactions nor keys. A block is a head and a number of parts, which
// a store keeps under its own keys, and reads when a [Block] asks for them.
//
//	place.go                  a row, and where it is in the list; a block with rows that changed since
//	head.go                   the head of a block, and the names of its parts
//	encode.go, integer.go     rows into columns
//	column.go                 a column, decoded
//	block.go, row.go          reading a block, and its rows
//	evaluate.go, bits.go      a filter on all rows of a block
//
// # A block
//
// A block holds rows that follow each other in the list, column by column. It owns all
// places from its own to the next block's. A row that stands alone in this part hides the
// block's row of the same place, or comes in between the block's rows.
//
// A filter reads only the columns that it looks at, and tests each entry of a column's
// dictionary once, not each row. Columns are read when they are first needed: what a
// filter excludes early costs nothing more.
//
// # Memory
//
// A Block uses its memory again for the next block, and lends its rows until the next
// call. A column aliases the bytes that it was decoded from.
package blocks
