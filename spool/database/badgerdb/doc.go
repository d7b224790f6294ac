// Package badgerdb is a server's database in one folder: an embedded Badger.
//
// It holds records, templates, keys and accounts, and makes three promises:
//
//   - A write is on disk, fsynced, when its method returns.
//   - A batch is there as a whole or not at all, also after a crash.
//   - Nothing read under one account belongs to another.
//
// # Files of this package
//
//	db.go, commit.go               opening, closing and maintenance; the one writer and its failures
//	space.go                       the disk space and memory that Badger takes; totals
//	key.go, value.go               the layout below: keys; reading and writing what is under them
//	fold.go, record.go             events to records; a record's state, deltas and bodies
//	search.go, scan.go             what callers ask for; a pass over the list
//	words.go, sorted.go            the words in bodies; orders other than newest first
//	sum.go                         statistics from the summaries of blocks
//	rollup.go                      sessions, traces and users
//	span.go                        what no list shows: spans, traces, orphans
//	delete.go                      what a deletion, and the retention, look for
//	erase.go                       getting deleted bytes out of the files
//	repack.go                      bodies of a session that are packed against each other
//	pack.go, pack_step.go          which rows become blocks; how, while others write
//	block.go                       reading and writing one block, and the rows that hide its own
//	check.go                       a proof that all of this agrees
//	keyed.go                       what is small: templates, accounts, sidecars, the audit log
//	backup.go, move.go             backups; copies to and from another kind of database
//
// A file of the same name in package postgres is about the same.
//
// Package folder is the folder with Badger's files: who may open it, which version wrote
// it, and what is done about a crash or a bad block. Package blocks is the column store:
// what a block of rows is, without transactions and without keys. The rest stays
// together, because nearly all of it works in the transactions of one committer, on keys
// that one layout holds together.
//
// # Writes
//
// All writes go through one committer, which puts every waiting write into one
// transaction with one fsync. It runs one change after the other, each seeing those
// before it. So no two writers ever work from the same state, and Badger's own conflict
// detection is off.
//
// After the fsync of each commit, and once a second, the database checks that its folder
// is still the one it opened and can be written. Otherwise an fsync could succeed for
// files that are lost. If the check fails, it takes no more writes; see [DB.Failed].
//
// # A disk that breaks
//
// Whatever Badger reads while it opens is read beforehand, and what the disk cannot read
// is moved to a quarantine and replaced; see package folder.
//
// With Config.ReadAll every file is read beforehand, not just what opening needs. That is
// for the process that starts after one that met such a fault. A fault in a caller's
// goroutine fails the database, and the process ends with the name of the file.
//
// # Layout
//
// The folder holds Badger's files and FORMAT, a text with the version of this layout. In
// the database, numbers are big-endian, ids are the 16 bytes of the UUID, and values are
// JSON unless the table says otherwise.
//
// Keys of the database itself begin with 0. Keys of an account's records begin with 1 and
// its id, length first, so that no account's keys are among those of another. Keys of the
// small tables (package keyed) begin with 2.
//
//	00 'x'           since when something deleted may still be in the files, 12 bytes
//
//	02 kind, 00, length of the account's id 1, account, name
//
// Behind 01, the length of the account's id in one byte, and the id:
//
//	'r' request 16             archive.State: a record without its bodies, packed from a size on
//	'e' request 16, after 4    archive.Delta: what later events add to a large record
//	'b' request 16, event 16   body of an event, packed: package compress
//	'a' request 16, event 16   repack.Dependants: the bodies that are packed against this one
//	't' ^time 12, ^request 16  row that stands alone before the first block: rowcode
//	't' place 28               mark where a block begins, for walks over those rows
//	't' place 28, 0            a second such mark
//	'u' ^time 12, ^request 16  row that stands alone in a block's part of the list: rowcode
//	'd' ^time 12, ^request 16  head of the block of rows that begins at this place: package blocks
//	'k' place 28, column       column of the block at this place, packed: blocks.Part
//	'k' place 28, ff           summary of the block's rows, like a column but never packed:
//	                           query.Summarize; empty if there is none
//	'w' page 1, place 28       page of the words of that block's rows: package textindex
//	'n'                        archive.Counts: what the account has
//	'x' request 16             tombstone of a record: when it was deleted, 12 bytes
//	'y' hash 16                tombstone of a metadata value: up to when, 12 bytes
//	'p' hash 16, request 16    mark: the record has, or had, a metadata value its row does not show
//	'o' request 16             mark: a record whose request has not arrived
//	'g' ^time 12, ^request 16  mark: a record that is only a span
//	'j' trace 16, request 16   mark: a record that has a span of this trace
//	'm' key 16                 archive.Set: what belongs together
//	's' kind 1, name           rollup.Sums: what the records of a session, trace or user add up to
//
// ^time is the list time with every bit inverted: 8 bytes of seconds, 4 of nanoseconds.
// ^request is the request id, also inverted. So a plain walk meets the newest record
// first.
//
// # Large records
//
// A state of archive.DeltaMin bytes or more is marked, or has a byte 1 in front of its JSON, and is not
// rewritten with each event of its record. The additions of a batch are a separate delta,
// under 'e', until these additions reach half the size of the state. Then the state is
// written as a whole and replaces them. Every reader goes through DB.state, which joins
// the parts (see archive.Stored).
//
// # The list
//
// A search walks the list of rows and touches neither states nor bodies.
//
// A new row stands alone, under 't'. When there are enough, the older ones are packed
// into blocks of up to 4096 rows. Each column of a block is a separate value, so a filter
// reads only the columns it looks at, and it tests each entry of a column's dictionary
// once, not each row. That is why there is no index of tags, metadata or templates: a
// million rows are a few hundred blocks. The head of a block has a Bloom filter of its
// tags, so that of a rare one few blocks are read.
//
// A row that changes after it was packed stands alone again and hides the block's row,
// until there are enough of those to repack the block. Packing commits the new block and
// the removal of its rows in one transaction; a failure to pack changes nothing.
//
// Rows that stand alone in a block's part of the list are kept apart, under 'u'. A packed
// row leaves a Badger tombstone, which every walk has to pass until Badger has compacted
// it away, and there are as many of those as records. So a walk over 't' must never go
// past the beginning of the first block: two marks end it, because Badger reads one key
// ahead.
//
// With a million records in an account, a page by tag takes 5 ms, one by metadata value
// or template version 13 to 16 ms, including the count of all matches.
//
// # Deleting
//
// A deletion takes effect with its transaction, and leaves tombstones that reject later
// arrivals. The bytes leave the files when Erase has rewritten the blocks, tables and
// value logs that contain any of them. Records beyond the retention take the same way,
// without tombstones.
//
// All of it is one database, not one for each week: the bytes of an account, the records
// of a person and the retries of an id do not follow weeks, and a batch stays one
// transaction.
package badgerdb
