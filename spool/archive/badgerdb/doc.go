// Package badgerdb is a server's database in one folder: an embedded Badger that holds records, templates and keys. It
// promises that a write is on disk, fsynced, when its method returns; that a batch is there whole or not at all, also
// after a crash; and that nothing read under one account belongs to another.
//
// # Writes
//
// All writes go through one committer, which puts every write that waits into one transaction with one fsync. It runs
// one change after the other, each seeing those before it, so no two writers ever work from the same state and Badger's
// own conflict detection is off.
//
// After each commit's fsync, and each second, it looks whether its folder is the one that it opened and can be written:
// else an fsync may succeed and write nothing that is found again. Then it takes no more writes (DB.Failed).
//
// # A disk that breaks
//
// Badger reads its files through mappings, where a block that the disk cannot read is a fault. What it reads while it
// opens is read before (unreadable.go). A file with a bad block is set aside in the folder quarantine, and in its place
// comes
//
//	a value log            the entries that are whole, each at its old offset, and fillers between them
//	a write-ahead log      the entries that are whole, no longer in transactions
//	a table                one of the blocks that are whole; nothing if its index is lost, and the MANIFEST forgets it.
//	                       Older versions of the keys that are lost may show
//	DISCARD, KEYREGISTRY   nothing; Badger makes new ones
//
// With Config.ReadAll this is done for all that there is, rather than for what opening needs. It is for a process after one
// that met a fault. A fault in the goroutine of a caller fails the database, so that the process ends with the file's name.
//
// # Layout
//
// The folder holds Badger's files and FORMAT, a text that names the version of this layout. In the database, numbers are
// big-endian, ids are the 16 bytes of the UUID, and everything else is JSON unless it says otherwise. A key begins
// with 0 if it belongs to the server, or with 1 and its account, length first, so that no account's keys lie among
// another's:
//
//	00 'a' name                                  account
//	00 'k' hash 32                               key, by the SHA-256 of its secret
//	00 'u' id                                    person, with the hash of the password
//	00 'e' email                                 id of the person who signs in with it
//	00 'i' hash 32                               wire.Invite, by the SHA-256 of its code
//	00 'r' hash 32                               wire.Reset, by the SHA-256 of its code
//	00 's' hash 32                               wire.Session, by the SHA-256 of its token
//	00 'f' hash 32                               wire.Failures: failed sign-ins, by the SHA-256 of what they have in common
//	00 'x'                                       since when something deleted may still be in the files, 12 bytes
//	00 'c'                                       how far an unfinished copy into this database has come in its source: text, newline
//	01 len 1, account, 'r' request 16            archive.State: a record apart from its bodies
//	01 len 1, account, 'e' request 16, after 4   archive.Delta: what later events add to that of a large record
//	01 len 1, account, 'b' request 16, event 16  body of an event, packed: dictionary.go, column.go
//	01 len 1, account, 't' ^time 12, ^request 16 row of the list that stands alone before the first block: rowcode.go
//	01 len 1, account, 't' place 28              mark where a block begins, for whoever walks those rows; place 28, 0: another
//	01 len 1, account, 'u' ^time 12, ^request 16 row of the list that stands alone in a block's part of it: rowcode.go
//	01 len 1, account, 'd' ^time 12, ^request 16 head of a block of rows, from this place on: block.go
//	01 len 1, account, 'k' place 28, column      column of the block at this place: column.go
//	01 len 1, account, 'k' place 28, ff          summary of the block's rows, like a column, never packed: archive.Summarize; empty if there is none
//	01 len 1, account, 'n'                       how many records there are, and bytes of their events: 2 uint64
//	01 len 1, account, 'x' request 16            tombstone of a record: when it was deleted, 12 bytes
//	01 len 1, account, 'y' hash 16               tombstone of a metadata value: up to when, 12 bytes
//	01 len 1, account, 'p' hash 16, request 16   mark: the record has, or had, this metadata value, and its row does not show it
//	01 len 1, account, 'o' request 16            wire.Orphan: a record whose request has not come
//	01 len 1, account, 'w'                       archive.Orphans: the tally of these
//	01 len 1, account, 's' sidecar 16            wire.FleetSidecar: what a sidecar told of itself last
//	01 len 1, account, 'h' name                  wire.Template: the head of a template
//	01 len 1, account, 'i' id 8                  name of the template with this id: text
//	01 len 1, account, 'v' id 8, number 4        wire.Version
//	01 len 1, account, 'c' revision 8            name of the template that this revision changed last: text
//	01 len 1, account, 'm'                       last ids and revision given out
//	01 len 1, account, 'l' ^id 16                wire.AuditEntry
//
// ^time is the order time with every bit inverted, 8 bytes of seconds and 4 of nanoseconds, and ^request the
// request id likewise: a plain walk meets the newest record first. A template has one 'c' key, that of its last change: the feed grows with the templates, not with
// their changes.
//
// # Large records
//
// A state of archive.DeltaMin or more has a byte 1 before its JSON, and is not written with each
// event of its record. What a batch adds stands beside it, under 'e', until all that does has
// half the bytes of the state; then the state is written whole and takes its place. Whoever
// reads a record goes through DB.state, which joins them (archive.Stored).
//
// # The list
//
// A search walks the list and touches neither states nor bodies. A new row stands alone, under 't'; when there are enough,
// the older ones are packed into blocks of up to 4096, whose columns are values of their own, so that a filter reads only what
// it looks at. It asks each entry of a column's dictionary once, not each row. That is why there is no index of tags, metadata
// or templates: a million rows are a few hundred blocks. A row that changes stands alone again and hides the block's, until
// there are enough of those. Rows and what they are packed into change in one transaction, and a failure to pack changes
// nothing.
//
// Rows that stand alone in a block's part of the list lie apart, under 'u'. A packed row leaves a tombstone, which Badger passes
// over whenever it walks by, until it has compacted it away. There are as many as records, so a walk over 't' must never come
// behind the first block: two marks stand at its beginning, for Badger reads one key ahead. With a million records of an account a
// page by tag takes 5 ms, one by metadata value or template version 13 to 16 ms, with the count of all that match.
//
// # Deleting
//
// A deletion takes effect with its transaction, and leaves tombstones that keep out what comes later. The bytes leave the
// files when Erase has rewritten the blocks, the tables and the value logs that hold any of them. Records beyond the retention
// go the same way, without tombstones. All of it is one database rather than one for each week: the bytes of an account, the
// records of a person and the retries of an id do not follow weeks, and a batch stays one transaction.
package badgerdb
