// Package spool is a durable queue of events on one disk: what a sidecar has answered 200 for lies here until the server
// has it. It stores bytes and knows nothing of what they mean.
//
// # What it promises
//
//   - When Append returns nil, the events are fsynced. Appends that come together share one commit and one fsync; where several
//     writers come more than 200 times a second, they wait for each other up to 5 ms (gather.go). A lone writer does not wait.
//   - An event stays until Ack covers it. There is no age and no number of tries after which it goes.
//   - Sequences have no gaps. When the spool is opened it proves that none is missing; what a broken disk took is
//     counted, logged and set aside, and the spool goes on with the rest. Nothing that cannot be read is replaced by
//     something empty.
//   - What Hold and Bury move to a lane stays there until Release. How many events the lanes hold is written down apart from
//     them, so that a file that is gone is counted as well.
//   - Memory does not grow with what waits. Five databases are open at most: the generation that is written, the next one, one that
//     is being sealed, and two that are read. Of the lanes, some 100 bytes a file are kept.
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
// The bounds are of disk blocks: of everything in the spool's folder (Config.BytesMax) and in the data folder around it
// (Config.DiskMax). A walk over all files counts them, when the spool is opened and whenever Status is asked, which
// Run does every second; in between, what is made is added (guard.go). So what others write into the data folder counts a second
// later, and some seconds if there are thousands of files. The lanes may take a quarter of BytesMax; beyond it Hold and Bury answer
// ErrLanesFull, and the events stay where they are.
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
// What lies in a lane stays there until Release; to replay it is to append it again first.
//
// # The folder
//
//	FORMAT                        "promptspool spool format 1"; a newer one is refused
//	LOCK                          held by the process that has the spool open, with its pid
//	cursor                        frontier and next sequence (cursor.go), in two slots (slots.go)
//	gen-0000000000000001/         a generation: a Badger database, named by its first sequence in hexadecimal
//	    00001.mem                 keys, while it is written      ┐ each event leaves a key here ...
//	    000001.vlog               frames (frame.go)              ┘ ... and a frame there
//	    00001.sst                 keys, once it is sealed
//	    SEAL                      checksums of all but the value log (seal.go)
//	    MANIFEST KEYREGISTRY DISCARD
//	gen-0000000000000f3a.1/       a generation that was rebuilt from the raw files of a damaged one
//	lanes/                        held events and dead letters, plain files (segment.go)
//	    held-0000000000000a01     what was moved at once, named by its first sequence
//	lanes.count                   how many events each lane holds (lanecount.go), in two slots
//	quarantine/                   what is damaged, for a person to look at; nothing removes it
//	ballast                       4 MiB for a full disk (guard.go)
//	.trash-* .build-*             being removed, being built or made ahead; Open removes them, in lanes/ as well
//
// # Why generations
//
// A queue in one Badger database needs deletions, compaction and collection of its value log before the disk comes
// back. A generation is never deleted from: it is written, sealed, read, and removed as a folder. It holds so few
// keys that they fit in one memtable, so nothing is flushed or compacted while it is written, and damage stays within
// it. Each opening of the spool writes to a new one, so an old one is never written again.
//
// They are of 16 MiB, the grain in which disk comes back. To make one takes longer than many commits, and so does to seal one. So
// while events come quickly, the next one is made when half of the present one is full (spare.go), in a folder that gets its name
// when it is needed, and the full one is sealed beside the commits to the new one; one that lies ready for longer than 5 s is dropped. Where
// much waits, the next one is larger, up to 64 MiB, which shrinks again once all in it is acknowledged (roll.go). After a crash two
// generations may be unsealed, and one may have no place yet; Open replays those and removes this.
//
// # How a write becomes durable
//
// Badger's SyncWrites is on while a generation is appended to. A commit, which holds all appends that
// wait, returns after an msync of both logs as a whole: first the value log, then the write-ahead log,
// so that each key in the latter has its frame. The rest is ours:
//
//   - Badger does not sync the names of new logs. tighten (badger.go) and place (generation.go) do,
//     before the first commit, and a generation never goes on in another log: see
//     generationFramesMax and generationOptions.
//   - When it cannot sync the value log, Badger only logs that, and the commit succeeds. storeLog
//     (badger.go) fails the spool before the commit returns.
//   - A commit that failed may have left its keys without their frames. forget.go takes them out.
//   - A write into a hole of a file is SIGBUS on a full disk (reserve.go, see above), and a sync
//     succeeds in a folder that is gone or read-only (see "A disk that breaks").
//
// On Linux an msync is an fdatasync of what is mapped. Badger's does nothing on Windows.
//
// An earlier version found Badger's mappings in /proc/self/maps, gave up their pages, and synced both
// files itself. In six pairs of runs, medians at 1, 64 and 256 connections of 4 KB:
//
//	                   processor time a write   requests/s            p99, ms          peak resident, MiB
//	giving up pages    630, 132, 131 µs         604, 2,770, 1,818     12, 104, 502     37, 47, 54
//	SyncWrites         630, 130, 125 µs         696, 3,558, 2,643     11,  66, 241     50, 62, 71
//
// (The machine was busy: compare the two.) What is resident in addition are pages of files, which the
// kernel takes back: in a cgroup of 96 MiB the peaks are 116 and 114 MiB.
//
// If the kernel writes the write-ahead log of its own accord before the value log is synced, and then
// the power fails, the newest commit lacks frames although it was never answered. So what is missing of
// the newest commit, and of no other, is not counted as lost but as uncertain (uncertain.go).
//
// Measured on a machine with two cores, server away, beside a bare file of frames with grouped fdatasync behind the same HTTP handler
// (go test -run '^$' -bench BesideTheFloors/4KB ./cmd/promptspool/e2e): in some ten runs 1 connection reaches 0.50 to 0.73 of the file's rate,
// 64 reach 0.62 to 0.76 and 256 reach 0.70 to 0.77; their p99 is 1.4 to 2.0, 1.6 to 2.3 and 2.1 to 2.4 times the file's. Bodies of 100 KB from 64: 0.65 and 0.95 of the rate, p99 3.1 and
// 1.5 times.
//
// Beside a queue in one Badger database that syncs itself (BenchmarkLayouts; 131,072 events of 4 KB in commits of 16, then all are
// acknowledged; both in one run):
//
//	              events/s     p99   anonymous   written/payload   disk/payload   disk after all are acknowledged
//	generations     33,577   1.0 ms     6.1 MiB             1.175          1.065    24 MiB, in 0.2 s
//	one database    21,631   2.1 ms    13.9 MiB            15.710          1.016   522 MiB, after Flatten and collecting the value log
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
// A file of a lane whose frames do not follow each other goes to quarantine, and what is whole in it to a new one. What the
// lanes then hold less than lanes.count says is lost.
//
// # Reading
//
// Every frame is verified on every read. Badger stops at a wrong bit of its own beside a whole frame; so what it does not give is
// looked for in the raw value log, once for a generation (rescue.go), and only what is not whole there either is lost. A
// generation whose files no longer match its SEAL when it is to be read is rebuilt, as by the next start. Lost events are
// left out, counted (Status.Gaps, promptspool_spool_gaps_total) and logged, and never hold up the ones behind them. Ack passes over
// those behind what it is told, so that lost events do not wait when nothing follows them.
//
// # A disk that breaks
//
// A block that the disk cannot read (EIO) is damage of its generation, like a checksum that does not fit. Badger reads through
// mappings, where such a block is SIGBUS, in goroutines of its own as well; so a generation's small files are read whole before Badger
// opens it, and its value log before Read does (package rawlog). With such a block it is rebuilt from the rest: zeros stand for the
// block, the frames in it are lost and counted, the old folder goes to quarantine. A block that goes bad in between is a fault in the
// goroutine that reads; its database is abandoned, and the generation rebuilt. What is left is a fault in a goroutine of Badger's, while
// it writes to a page that it wrote before and that the kernel has let go of: it ends the process, and the next start rebuilds.
//
// After each commit's fsync, and each second, the spool looks whether its folder is the one that it opened and can be written: on a file
// system that was made read-only an fsync succeeds and writes nothing. If not, it takes nothing more, and what it holds is delivered.
// A write is answered after that look, so none that was answered is at stake.
//
// # Looking without changing
//
// Spool.Check reads and verifies all that waits while the spool goes on. Of a stopped one, OpenFolder gives a Folder, which changes
// nothing: Check and Status tell what Open would find, Waiting and Lane yield what is whole. Quarantined yields what is whole in
// the quarantine. Repair does what Open does, and rebuilds the sealed generations that Read would have to search.
//
// # Badger 4.9.6
//
// Pinned, because this package reads its files (raw.go) and its log lines (badger.go), and leans on what it found out:
// see storeOptions and generationOptions for the settings that matter, each with what happens otherwise.
package spool
