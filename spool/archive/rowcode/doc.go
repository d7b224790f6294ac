// Package rowcode holds the form in which stores keep the row that a record has in lists:
// its columns, their bytes, and the references that stand for long metadata values.
//
// Stores read no more columns of a row than a question needs. The bytes are a format on
// disk.
package rowcode
