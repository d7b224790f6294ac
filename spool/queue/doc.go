// Package queue is a durable queue of events on one disk.
//
// A sidecar answers 200 for an event once the spool has it, and the spool keeps it until
// the server has it. It stores bytes, and knows nothing about their meaning.
//
// # Guarantees
//
//   - When Append returns nil, the events are fsynced. Appends that arrive together share
//     one commit and one fsync.
//   - An event stays until Ack covers it. It never expires, by age or by failed
//     deliveries.
//   - Sequences have no gaps. Opening the spool proves that none is missing. Events lost
//     to a broken disk are counted and logged, damaged files are kept in quarantine, and
//     the spool continues with the rest. Unreadable data is never replaced by something
//     empty.
//   - Events that Hold and Bury move to a lane stay there until Release. How many events
//     the lanes hold is stored apart from them, so that a missing file is noticed. Events
//     whose record is at a limit may be dropped for lack of space, which is counted and
//     logged.
//   - Memory does not grow with the backlog. At most five databases are open: the
//     generation that is written, the next one, one that is being sealed, and two that
//     are read. A file of the lanes takes some 100 bytes.
//   - A failed fsync is the end: all waiting callers get ErrFailed, and the process must
//     end (see Queue.Failed).
//   - The spool stays within its bounds of disk, and leaves some free (see FullError). At
//     a bound it refuses new events and keeps the old ones. When there is space again, it
//     accepts events within a second.
//
// # The life of an event
//
//	Append ──▶ queue ──▶ one commit for all waiting ──▶ the current generation ──▶ Read, any number of times
//	                     (by the first of them, the                                      │
//	                      leader, which then passes          delivered ──────────────────┤
//	                      the lead on)                       key rejected ──▶ Hold ──────┤
//	                                                         content rejected ──▶ Bury ──┤
//	                                                                                     ▼
//	       the generation's folder is removed, once all of it is acknowledged ◀───────── Ack
//
// An event in a lane stays there until Release. To replay it, append it again first.
//
// # Where to start reading
//
//	queue.go                              the queue, its settings and its errors, opening and closing
//	append.go                             writing: one commit for all waiting
//	read.go, rescue.go                    reading, what is done about damage on the way, and repair
//	ack.go, package lane                  the frontier, held events and dead letters
//	generations.go, package generation    the generations in order, and the open ones; one of them
//	package frame                         the format of an event
//	prove.go                              opening: the proof that nothing is missing
//	guard.go, package disk                the bounds of disk, and what is asked of a file system
//	status.go                             what waits, in all and for each key
//	check.go, report.go, folder.go        looking without changing, and what was lost
//
// # The folder
//
//	FORMAT                        "promptspool spool format 1"; a newer one is rejected
//	LOCK                          held by the process that has the spool open, with its pid
//	cursor                        frontier and next sequence, in two slots (package disk)
//	gen-0000000000000001/         a generation: a Badger database, named by its first sequence in hexadecimal
//	    00001.mem                 keys, while it is written      ┐ each event leaves a key here ...
//	    000001.vlog               frames (package frame)         ┘ ... and a frame there
//	    00001.sst                 keys, once it is sealed
//	    SEAL                      checksums of all files except the value log
//	    MANIFEST KEYREGISTRY DISCARD
//	gen-0000000000000f3a.1/       a generation that was rebuilt from the raw files of a damaged one
//	lanes/                        held events and dead letters, plain files (package lane)
//	    held-0000000000000a01     the events of one move, named by the first sequence
//	    limit-0000000000000b02    dead letters whose record is at a limit
//	lanes.count                   how many events each lane holds, in two slots
//	quarantine/                   damaged files, for a person to look at; nothing removes them
//	    losses.jsonl              which events were lost, and when that was found (report.go)
//	ballast                       4 MiB for a full disk (guard.go)
//	.trash-* .build-*             being removed or built; Open removes them (lanes/ too)
//
// # Why generations
//
// A queue in one Badger database needs deletions, compaction and garbage collection of
// its value log before disk space comes back. Nothing is ever deleted from a generation:
// it is written, sealed, read, and removed as a folder. It holds so few keys that they
// fit in one memtable, so nothing is flushed or compacted while it is written, and damage
// stays within it. Each time the spool is opened, it writes to a new one, so an old one
// is never written again.
//
// A generation is 16 MiB, the unit in which disk space comes back. One for a larger commit
// shrinks again once all of it is acknowledged (generations.go). Sealing one takes longer than many
// commits, so the full one is sealed while commits go to the next. After a crash, two
// generations may be unsealed, which Open replays, and one may have no place yet, which Open
// removes.
//
// # How a write becomes durable
//
// Badger writes a commit, which holds all appends that wait, and syncs nothing. Package
// generation then syncs both logs: first the value log, then the write-ahead log, so that
// each key in the latter has its frame. The rest is up to us, too:
//
//   - The names of new logs are synced when a generation is made and gets its place, before
//     the first commit. A generation never continues in a second log.
//   - On a full disk, a write into a hole of a file is SIGBUS (see "A full disk"). A sync
//     succeeds in a folder that is gone or read-only (see "A disk that breaks").
//
// If the kernel writes the write-ahead log by itself before the value log is synced, and
// then the power fails, the newest commit lacks frames although it was never answered. So
// may one that failed: none follows it before the next start. So what is missing from the
// newest commit, and from no other, is counted as uncertain, not as lost
// (Evidence.DropUncertain).
//
// # A full disk
//
// Badger writes through mappings of files with holes. On a full disk the kernel answers
// with SIGBUS, which ends the process. So a generation gets all its blocks when it is
// made, and commits to it need no more. It is made, and the one before it sealed, only
// while the disk has space for both and --spool-free-min is still left.
//
// To seal a generation, or to close or open the spool, on a full disk, a file of ballast
// is removed first (guard.go). If that is not enough, a full generation waits, Close
// leaves the newest one as a crash would, and Open reports how much is missing. A window
// of a few milliseconds remains between checking and writing, in which another process
// would have to take everything that is left.
//
// The bounds are of disk blocks: of everything in the spool's folder (Config.BytesMax),
// and in the data folder around it (Config.DiskMax). A walk over all files counts them
// when the spool is opened and whenever Status is called, which Run does every second. In
// between, what the spool makes is added (guard.go). So what others write into the data
// folder counts up to ten seconds later.
//
// The lanes may use a quarter of BytesMax. Beyond it, Hold and Bury return ErrLanesFull,
// and the events stay where they are. Dead letters whose record is at a limit never are the
// reason: they are dropped, the oldest first, before anything else finds no space in the
// lanes, in the spool or on its disk. Of one key they may use a sixteenth of the lanes.
//
// # A disk that breaks
//
// A block that the disk cannot read (EIO) is damage of its generation, like a wrong
// checksum. Badger reads through mappings, where such a block is SIGBUS, also in its own
// goroutines. So a generation's small files are read whole before Badger opens it, and
// its value log before Read does (package rawlog). A generation with such a block is
// rebuilt from the rest: zeros replace the block, the frames in it are lost and counted,
// and the old folder goes to quarantine.
//
// A block that goes bad later is a fault in the goroutine that reads it. The database is
// then abandoned, and the generation rebuilt. One case remains: a fault in one of
// Badger's goroutines, when it writes to a page that it wrote before and that the kernel
// has dropped. It ends the process, and the next start rebuilds.
//
// After each commit's fsync, and each second, the spool checks that its folder is still
// the one that it opened, and writable: on a file system that was made read-only, an
// fsync succeeds and writes nothing. If not, the spool accepts nothing more, and what it
// holds is delivered. A write is answered after that check, so no answered write is at
// risk.
//
// # Opening
//
// Badger repairs by cutting off everything after the first wrong byte, deletes tables
// that no MANIFEST names, and ends the process on some damaged ones. So it sees only what
// was found whole:
//
//	generation is ...                                 then
//	sealed, and its files match SEAL                  its keys are walked; payloads are verified by Read
//	not closed, and both logs hold the same events    Badger replays it; it is sealed and walked
//	anything else, or keys are missing                every whole frame of the raw value log goes to a new edition,
//	                                                  which is sealed and walked; the old one goes to quarantine
//	                                                  if events are missing
//
// Whole events after the last one that the write-ahead log names are kept as well, as
// long as they follow each other: either the log is damaged, or they were being committed
// when the power failed. The latter were never answered, and delivering them does no
// harm. An event that still lacks its key or its frame is counted as lost.
//
// A damaged file of a lane goes to quarantine, and what is whole in it to a new file. If
// the lanes then hold fewer events than lanes.count says, the difference is lost.
//
// # Reading
//
// Every frame is verified on every read. Badger stops at a wrong bit in its own data even
// when the frame next to it is whole. So what it does not return is looked for in the raw
// value log, once for each generation (rescue.go), and only what is not whole there
// either is lost. A generation whose files no longer match its SEAL when it is read is
// rebuilt, as the next start would do.
//
// Lost events are left out, counted (Status.Gaps, promptspool_spool_gaps_total) and
// logged, and never hold up the ones after them. Ack passes over those right after the
// sequence that it is given, so that lost events do not wait when nothing follows them.
//
// # Looking without changing
//
// Queue.Check reads and verifies all waiting events while the spool runs. For a stopped
// spool, OpenFolder returns a Folder, which changes nothing: Check and Status report what
// Open would find, Waiting and Lane yield what is whole. Repair does what Open does, and
// rebuilds the sealed generations that Read would have to search.
//
// # Measurements
//
// With Badger's SyncWrites, which is an msync of each log, in the place of our fdatasync, a
// write of 4 KB takes more processor time (BenchmarkAppend, user and system, the least of
// five runs in turns):
//
//	              1 writer   64 writers
//	SyncWrites      378 µs      28.6 µs
//	fdatasync       332 µs      28.5 µs
//
// Before it syncs a log, disk.Mapped takes its pages out of the mapping. The kernel would
// otherwise protect each of them before it writes it. At 64 connections a write takes 71
// instead of 82 µs (medians of five runs in turns), and the sidecar's peak is 64 instead
// of 84 MiB.
//
// On a machine with two cores, with the server away, compared with a plain file of frames
// with grouped fdatasync and the same HTTP handler (go test -tags bench
// -run '^$' -bench BesideTheFloors/4KB ./cmd/promptspool/e2e/bench), in some ten runs:
//
//	               rate, of the file's   p99, times the file's
//	4 KB from 1           0.50 to 0.73              1.4 to 2.0
//	4 KB from 64          0.62 to 0.76              1.6 to 2.3
//	4 KB from 256         0.70 to 0.77              2.1 to 2.4
//	100 KB from 64        0.65 and 0.95             3.1 and 1.5
//
// Compared with a queue in one Badger database that syncs itself (BenchmarkLayouts;
// 131,072 events of 4 KB in commits of 16, then all are acknowledged; both in one run):
//
//	              events/s     p99   anonymous   written/payload   disk/payload   disk once all is acknowledged
//	generations     33,577   1.0 ms     6.1 MiB             1.175          1.065    24 MiB, in 0.2 s
//	one database    21,631   2.1 ms    13.9 MiB            15.710          1.016   522 MiB, after Flatten and GC
package queue
