// Package archivetest is the suite that every archive.Store passes, and what it is made of: random histories of records and
// random searches. It takes the pure functions of package archive as the oracle: a store holds what State.Fold makes of
// the events that it took, and finds what Query.Match says.
package archivetest
