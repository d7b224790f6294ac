// Package folder is the folder of a Badger database: who may open it, which version wrote
// it, and how it is opened after a crash or on a disk with bad blocks.
//
// It knows Badger's files, and nothing of the keys in them.
//
//	format.go                            the file FORMAT
//	open.go                              one process at a time, and what has to go before Badger opens its files
//	unreadable.go, unreadable_table.go   files with bad blocks
//
// # A disk that breaks
//
// Badger reads its files through mappings, where a block that the disk cannot read raises
// SIGBUS instead of returning an error. So whatever Badger reads while it opens is read
// beforehand. A file with a bad block is moved to the folder quarantine and replaced:
//
//	a value log            by its intact entries, each at its old offset, with fillers between them
//	a write-ahead log      by its intact entries, no longer in transactions
//	a table                by a table of its intact blocks. Older versions of the lost keys may show.
//	                       If none is left, the table is dropped, and the MANIFEST forgets it
//	DISCARD, KEYREGISTRY   by nothing; Badger makes new ones
package folder
