// Package databasetest is the suite that every archive.Store passes, with its random
// histories of records and its random searches.
//
// Its oracle are pure functions: a store must hold what archive.State.Fold makes of the
// events that it took, and must find what query.Query.Match says.
package databasetest
