// Package generation is one generation of the queue: a small Badger database that holds a
// run of sequences.
//
// It is written during one opening of the spool (Writer), then sealed, which writes its
// keys to a table, then only read (Reader), and finally removed as a folder. Where Badger
// cannot be trusted, its raw files are searched (Evidence), and what is whole there goes
// to a new edition.
//
//	writer.go     making one, with all its blocks; Badger's options
//	seal.go       events on their way to the disk; closing one for good; is it what it was then?
//	reader.go     reading a sealed one, or the one that is written
//	files.go      its files, its name and its editions
//	evidence.go   what the raw files prove
//	rebuild.go    a new edition from the raw files, and a commit that may never have been answered
//
// The version of Badger is pinned (4.9.6), because this package reads Badger's files
// (evidence.go) and its log lines (package rawlog), and relies on details of its behaviour.
// storeOptions and generationOptions hold the settings that matter, each with what
// happens otherwise. The comment of package queue describes how a write becomes durable.
//
// The package knows nothing of the queue: which events were acknowledged, where the bounds
// of disk are, and what becomes of damage is up to the caller, who also keeps two calls
// that change one folder apart.
package generation
