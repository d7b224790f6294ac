// Package spool is a durable queue of events on one disk: what a sidecar has answered 200 for lies here until the server
// has it. It stores bytes and knows nothing of what they mean.
//
// # What it promises
//
//   - When Append returns nil, the events are fsynced. Appends that come together share one commit and one fsync.
//   - An event stays until Ack covers it. There is no age and no number of tries after which it goes.
//   - Sequences have no gaps. When the spool is opened it proves that none is missing; what a broken disk took is
//     counted, logged and set aside, and the spool goes on with the rest. Nothing that cannot be read is replaced by
//     something empty.
//   - Memory does not grow with what waits. Two databases are open at most: the generation that is written and one that
//     is read.
//   - A failed fsync is the end: everybody who waits gets ErrFailed, and the process must end (see Spool.Failed).
//   - It stays within its bounds of disk, and leaves some free (see FullError). At a bound it refuses new events and keeps
//     the old ones; when there is room again, it goes on by itself within a second.
//
// # A full disk
//
// Badger writes through mappings of files with holes; on a full disk the kernel answers with SIGBUS, which ends the
// process. So a generation gets all its blocks when it is made (reserve.go), and commits to it need no more. It is made,
// and the one before sealed, only while so much is free that both fit and --spool-free-min is left. To close or open the
// spool on a full disk, a file of ballast goes first (guard.go); if that is not enough, Close leaves the newest generation
// as a crash would, and Open says how much is missing. What remains is a few milliseconds between looking and writing, in
// which others would have to take all that is left.
//
// # The life of an event
//
//	Append ──▶ queue ──▶ one commit for all that wait ──▶ the generation that is written ──▶ Read, any number of times
//	                     (the first of them commits,                                           │
//	                      then hands the turn on)                     delivered ───────────────┤
//	                                                                  key refused ──▶ Hold ────┤
//	                                                                  content refused ▶ Bury ──┤
//	                                                                                           ▼
//	             the generation's folder is removed, once all in it are acknowledged ◀────── Ack
//
// # The folder
//
//	FORMAT                        "promptspool spool format 1"; a newer one is refused
//	LOCK                          held by the process that has the spool open, with its pid
//	cursor                        frontier and next sequence, two slots (cursor.go)
//	gen-0000000000000001/         a generation: a Badger database, named by its first sequence in hexadecimal
//	    00001.mem                 keys, while it is written      ┐ each event leaves a key here ...
//	    000001.vlog               frames (frame.go)              ┘ ... and a frame there
//	    00001.sst                 keys, once it is sealed
//	    SEAL                      checksums of all but the value log (seal.go)
//	    MANIFEST KEYREGISTRY DISCARD
//	gen-0000000000000f3a.1/       a generation that was rebuilt from the raw files of a damaged one
//	lanes/                        held events and dead letters, plain files (segment.go)
//	    held-0000000000000a01     what was moved at once, named by its first sequence
//	quarantine/                   what is damaged, for a person to look at; nothing removes it
//	ballast                       4 MiB for a full disk (guard.go)
//	.trash-* .build-*             being removed, being built; Open removes them
//
// # Why generations
//
// A queue in one Badger database needs deletions, compaction and collection of its value log before the disk comes
// back. A generation is never deleted from: it is written, sealed, read, and removed as a folder. It holds so few
// keys that they fit in one memtable, so nothing is flushed or compacted while it is written, and damage stays within
// it. Each opening of the spool writes to a new one, so an old one is never written again.
//
// # Opening
//
// Badger repairs by cutting off what follows the first wrong byte, deletes tables that no MANIFEST names, and ends the
// process on some damaged ones. So it is shown only what was found whole:
//
//	generation is ...                                 then
//	sealed, and its files match SEAL                  its keys are walked; payloads are proved by Read
//	not closed, and both logs tell the same events    Badger replays it; it is sealed and walked
//	anything else, or keys are missing                every whole frame of the raw value log goes to a new edition, which is
//	                                                  sealed and walked; the old one goes to quarantine if events are missing
//
// Whole events behind the last one that the write-ahead log names are kept as well, as long as they follow each other:
// either the log is damaged, or they were being committed when the power failed. Nobody was told about the latter, and
// to deliver them does no harm. What still lacks its key or its frame is counted as lost.
//
// # Badger 4.9.6
//
// Pinned, because this package reads its files (raw.go) and its log lines (badger.go), and leans on what it found out:
// see storeOptions and generationOptions for the settings that matter, each with what happens otherwise.
package spool
