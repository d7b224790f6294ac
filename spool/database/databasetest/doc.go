// Package databasetest is the suite that every archive.Store passes, with its random
// histories of records and its random searches.
//
// Its oracle are pure functions: a store must hold what archive.State.Fold makes of the
// events that it took, and must find what query.Query.Match says.
//
// A new database calls these in its tests, with functions that open it empty and again:
//
//   - Run: each promise of archive.Store as a scene, listed in suite.go
//   - RunDrawn: many orders of events and questions, without -race
//   - RunLarge: scenes with many bytes and rows, without -race
//   - RunTogether (belonging.go): several servers of one database
//   - RunSpanRetention (tracing.go) and RunWritten (bench.go): by a clock, and by bytes
//   - RunMove (moving.go): everything is copied from and to each other database
//
// Scenes of writes are in folding.go, clocks.go, editing.go and deleting.go, those of spans and of
// calls that several report in tracing.go, recorded.go and belonging.go, and those of questions in
// asking.go and searching.go. history.go and filter.go draw what they work with. Bench is for
// benchmarks: bench.go, calls.go.
package databasetest
