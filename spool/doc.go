// Package spool is where everything that promptspool stores is kept. It has no code; this
// page is the map of the folders below it.
//
// A sidecar and a server each keep one store on a disk. The two have only that disk in
// common.
//
// # The queue of a sidecar
//
// Package queue is a durable FIFO of events. Append returns once they are fsynced; they stay
// until the server has them, however often the process is killed. It knows nothing about
// their meaning. Its parts:
//
//	queue/generation       one small Badger database of the queue: written, sealed, read, removed
//	queue/lane             held events and dead letters, as plain files
//	queue/frame            the bytes of one event, with its checksum
//
// # The records of a server
//
// Package archive folds events into records, whatever their order and however often they
// arrive, and says what a search or a statistic over them means. It is pure: it holds no
// file and no connection. A database stores what it decides, in one durable transaction
// for each batch.
//
//	archive/query          filters, orders, groups, sums: what a question means
//	archive/rowcode        the columns of a list, and their bytes
//
//	database/badgerdb      the default: one server, files in its data folder
//	database/postgres      several servers, or more data than one machine holds
//	database/keyed         small values under keys: templates, people, keys, sidecars
//	database/accounts      the rules for those values
//	database/compress      how bodies, states and columns are packed
//	database/transfer      copies one database into another
//	database/databasetest  the suites that both databases pass
//
// Nothing above the databases knows which one it has. Package api/calls, which the
// archive uses, reads what a model call says.
//
// # The disk
//
// Package disk is what both need from a file system: syncing, reserving blocks, noticing a
// full, read-only or broken disk. Package rawlog reads Badger's files without Badger, so
// that a damaged one can be rescued. Package crashpoint kills the process where a test
// asks for it.
//
// # What each promises
//
//   - A 200 of a sidecar: the event is on its disk, and reaches the server. Package queue
//     has the proof and its limits (a full disk, a bad block, a lost power supply).
//   - A 200 of a server: the record is committed in its database. On Badger this is an
//     msync, on PostgreSQL its own commit.
//   - Sent twice, stored once: events have ids, and folding the same one again changes
//     nothing.
package spool
