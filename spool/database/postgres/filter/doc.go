// Package filter answers filters in SQL, as far as the table records can.
//
//	header.go       the columns of the table, and what a record has in them
//	term.go         the hashes of a record's texts, in one column with one index; numbers of scores
//	                have cells there, with hashes as texts do
//	statement.go    a query's conditions as SQL on those columns
//
// A condition that no column answers is left out: then SQL selects more rows than the query,
// and query.Query.Match decides.
package filter
