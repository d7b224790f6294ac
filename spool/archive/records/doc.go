// Package records is the server's service over an archive.Store: it takes events, and
// answers what the API asks of records.
//
// A write goes through write.go. One record is shown by request.go, a trace by trace.go, sessions,
// traces and users by rollups.go, numbers by statistics.go; a list, and what waits for its request, by
// records.go, which also has the turns of what takes long. All records are walked by export.go and
// mask.go (secrets, prices); delete.go deletes.
package records
