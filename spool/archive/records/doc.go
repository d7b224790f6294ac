// Package records is the server's service over an archive.Store: it takes events, and
// answers what the API asks of records.
//
// A write goes through write.go, and join.go joins log records to their spans. One record is
// shown by request.go, a trace by trace.go, numbers by statistics.go; a list, and what waits for
// its request, by records.go. All records are walked by export.go and mask.go (secrets, prices), in
// parts that walk.go bounds; delete.go deletes.
package records
