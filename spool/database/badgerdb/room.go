package badgerdb

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"promptspool/api/wire"
	"promptspool/spool/disk"
)

// Badger writes through mappings of sparse files, in goroutines of its own as well. When
// the disk has no block for such a hole, the kernel sends SIGBUS, which ends the process.
// So a part of the disk stays free: writes must not take it, but what Badger has already
// begun may.

const (
	// freeMinDefault is enough for a memtable that is written out and for a compaction of
	// level 0.
	freeMinDefault      = 256 << 20
	freeMinDefaultShare = 16 // of a small disk

	// freeMinLeast is enough for a group, and for the log and the table of one memtable.
	freeMinLeast = 64 << 20

	openRoom    = 8 << 20   // to open, beside the tables that write-ahead logs become
	closeRoom   = 48 << 20  // for the table that the memtable becomes
	collectRoom = 128 << 20 // for the copy of a value log
)

// room watches the disk under a database. It belongs to the goroutine that commits.
type room struct {
	dir      string
	freeMin  int64 // 0: the default
	logger   *slog.Logger
	refusing bool
}

// free returns how much of the disk is free, and how much should stay free. If it cannot
// tell, it returns that everything is free: the folder may be gone, which
// folderLock.present notices.
func (r *room) free() (free, freeMin int64) {
	found, err := disk.RoomAt(r.dir)
	if err != nil {
		return 1 << 62, 0
	}

	// Of a small disk the default would take too large a share.
	if freeMin = r.freeMin; freeMin == 0 {
		freeMin = min(freeMinDefault, found.Total/freeMinDefaultShare)
	}
	return found.Free, max(freeMin, freeMinLeast)
}

// admission decides which changes of a group the disk has room for.
type admission struct{ free, freeMin int64 }

// admit looks at the disk, and logs when refusing writes begins or ends.
func (r *room) admit() admission {
	var a admission
	a.free, a.freeMin = r.free()

	switch full := a.free < a.freeMin; {
	case full && !r.refusing:
		r.logger.Warn("the disk is nearly full; writes are refused, and sidecars keep their events",
			"free_bytes", a.free, "free_min_bytes", a.freeMin, "folder", r.dir)
	case !full && r.refusing:
		r.logger.Info("the disk has room again; writes are accepted", "free_bytes", a.free)
	}
	r.refusing = a.free < a.freeMin

	return a
}

// refusal returns the error for a change with so many bytes of bodies, or nil. Changes
// without bodies may take half of what should stay free: deletions make room, and people
// must be able to sign in.
func (a admission) refusal(bytes int) error {
	least := a.freeMin
	if bytes == 0 {
		least /= 2
	}
	if a.free >= least {
		return nil
	}

	return wire.Unavailable(retryAfter, "The disk under the server is nearly full: "+
		"%d bytes are free, and --free-min is %d. "+
		"Free some space, or add some. Sidecars keep their events meanwhile.", a.free, a.freeMin)
}

// canOpen returns an error if opening the database would fill the disk, and so end the
// process.
func (r *room) canOpen() error {
	logs, err := filepath.Glob(filepath.Join(r.dir, "*.mem"))
	if err != nil {
		return err
	}

	// Badger makes a table of each write-ahead log before it deletes the log.
	need := int64(openRoom)
	for _, log := range logs {
		// Its blocks, not its size: the file is sparse.
		if info, err := os.Stat(log); err == nil {
			need += disk.Blocks(info)
		}
	}

	free, _ := r.free()
	if free >= need {
		return nil
	}

	return fmt.Errorf("the disk is full: opening the database takes %d bytes, and %d are free; "+
		"free %d more and start again: %w",
		need, free, need-free, disk.ErrFull)
}

// has reports whether bytes can be taken and still leave free what writes need.
func (r *room) has(bytes int64) bool {
	free, freeMin := r.free()
	return free-bytes >= freeMin
}

// canClose reports whether there is room to write out the memtable.
func (r *room) canClose() bool {
	free, _ := r.free()
	return free >= closeRoom
}
