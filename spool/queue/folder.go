package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"promptspool/spool/disk"
	"promptspool/spool/queue/generation"
	"promptspool/spool/queue/lane"
)

// Bounds of one reading by Queue.Waiting; a larger event comes alone.
const (
	exportEventsMax = 1000
	exportBytesMax  = 4 << 20
)

// Waiting yields, in order, the events that wait now and are whole.
//
// Some 4 MiB of them are in memory at a time. Events that are acknowledged meanwhile may
// be left out. Unreadable ones are counted and logged, as by Read. The sequence ends
// after an error. Waiting takes turns with calls that read and acknowledge.
func (q *Queue) Waiting(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		// Events appended from here on are left out, or a busy spool would never come to
		// an end.
		newest, _ := q.Newest()
		for from := q.Frontier(); from <= newest; from = max(from, q.Frontier()) {
			entries, end, err := q.Read(ctx, from, exportEventsMax, exportBytesMax)
			if err != nil {
				yield(Entry{}, err)
				return
			}

			for _, e := range entries {
				if e.Seq > newest || !yield(e, nil) {
					return
				}
			}
			from = end
		}
	}
}

// errEnough ends an inspection when the caller's loop ends.
var errEnough = errors.New("no more is wanted")

// Waiting yields, in order, the events that wait and are whole, with one in memory at a
// time.
//
// Damaged events are left out, see Check. The sequence ends after an error.
func (f *Folder) Waiting() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		in := inspection{folder: f, visit: func(ev generation.Evidence, from, end uint64) error {
			return yieldEvents(ev, from, end, yield)
		}}
		if err := in.run(context.Background()); err != nil && !errors.Is(err, errEnough) {
			yield(Entry{}, err)
		}
	}
}

// yieldEvents reads the whole events from <= sequence < end from the raw files. It
// returns errEnough when yield returns false.
func yieldEvents(ev generation.Evidence, from, end uint64, yield func(Entry, error) bool) error {
	for _, seq := range ev.Sequences() {
		if seq < from || seq >= end {
			continue
		}

		e, err := ev.Read(seq)
		if err != nil {
			return fmt.Errorf("spool: event %d in %s: %w", seq, ev.EventFile(seq), err)
		}
		if !yield(e, nil) {
			return errEnough
		}
	}
	return nil
}

// Folder gives read-only access to the folder of a spool that no process has open.
//
// It changes nothing, so the folder may be on a disk that is mounted read-only. Several
// processes may have a Folder open at the same time, but no sidecar can start meanwhile.
// Not safe for concurrent use.
type Folder struct {
	dir    string
	lock   *os.File // nil when the folder has no LOCK, as a copy may not
	cursor disk.Slots
	lanes  lane.Folder
}

// OpenFolder opens the folder of a spool for reading; Close it afterwards. It rejects a
// folder that is not a spool, that a process uses, or whose format is newer.
func OpenFolder(dir string) (*Folder, error) {
	f := &Folder{dir: dir}
	if !disk.Exists(f.path(formatName)) {
		return nil, fmt.Errorf("spool: %s is not a spool: it has no %s file; give the data folder of a sidecar",
			dir, formatName)
	}
	if err := checkFormat(dir); err != nil {
		return nil, err
	}

	var err error
	f.lock, err = shareDir(dir)
	if err != nil {
		return nil, err
	}

	// Under the lock, so that no sidecar changes these files while they are read.
	var damage error
	f.cursor, err = disk.PeekSlots(f.path(cursorName), cursorMagic)
	f.lanes, damage = lane.PeekFolder(dir)
	if err := errors.Join(err, damage); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// shareDir takes a shared lock of the folder: it keeps out a process that would change
// the folder, but not one that only reads. It returns nil for a folder without LOCK.
func shareDir(dir string) (*os.File, error) {
	file, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	// Without waiting: a sidecar keeps its lock for as long as it runs.
	if err := disk.Share(file); err != nil {
		return nil, errors.Join(inUse(dir, file, err), file.Close())
	}
	return file, nil
}

// Close releases the folder.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }

// Names in the spool's folder besides those of generations.
const (
	formatName     = "FORMAT"
	lockName       = "LOCK"
	cursorName     = "cursor"
	quarantineName = "quarantine"
	ballastName    = "ballast"
)

const (
	formatPrefix  = "promptspool spool format "
	formatVersion = 1
	cursorMagic   = "PSC\x01"
)

// checkFormat writes FORMAT in a new folder. It rejects a folder whose FORMAT is newer,
// unreadable, or missing although there is data: unreadable data is never replaced by
// something empty.
func checkFormat(dir string) error {
	path := filepath.Join(dir, formatName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return createFormat(dir, path)
	}
	if disk.IsUnreadable(err) {
		return fmt.Errorf("spool: %w; if the folder is a spool of this version, "+
			"remove the file and write %q into a new one", err, formatPrefix+"1")
	}
	if err != nil {
		return err
	}

	version, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(text), formatPrefix)))
	if err != nil || version < 1 || !strings.HasPrefix(string(text), formatPrefix) {
		return fmt.Errorf("spool: %s does not say a format; if the folder is a spool, write %q into it",
			path, formatPrefix+"1")
	}
	if version > formatVersion {
		return fmt.Errorf("spool: %s was written by a newer version of promptspool (spool format %d; this one "+
			"reads up to %d): run that version, or deliver what is in it with its \"promptspool spool drain\" and "+
			"choose an empty folder", dir, version, formatVersion)
	}
	return nil
}

func createFormat(dir, path string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	// The lock is taken before this, and a crash may have left FORMAT.new. Anything else
	// may be data that this version does not know.
	for _, e := range entries {
		if name := e.Name(); name != lockName && !strings.HasPrefix(name, formatName) {
			return fmt.Errorf("spool: %s is not empty (%s) and has no %s file; "+
				"choose an empty folder, or if it is a spool, write %q into %s",
				dir, name, formatName, formatPrefix+"1", path)
		}
	}

	text := fmt.Appendf(nil, "%s%d\n", formatPrefix, formatVersion)
	if err := disk.WriteFile(path, path+".new", text); err != nil {
		return err
	}
	// The folder may be new as well: without its own name on the disk, a power failure
	// would take everything in it.
	return disk.SyncDir(filepath.Dir(dir))
}

// dirLock keeps a second process out of a folder. The kernel releases it when the process
// ends, in whatever way it ends.
type dirLock struct {
	file   *os.File
	folder *os.File // the folder itself, as it was when it was locked
}

func lockDir(dir string) (*dirLock, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := disk.Lock(file); err != nil {
		return nil, errors.Join(inUse(dir, file, err), file.Close())
	}

	// Overwrite the earlier pid without truncating the file, which takes no block of a
	// full disk.
	_, err = file.WriteAt(fmt.Appendf(nil, "%-19d\n", os.Getpid()), 0)
	if err != nil && !disk.IsUnreadable(err) {
		return nil, errors.Join(err, file.Close())
	}

	// Kept open to notice when the folder at this path becomes another one: see
	// disk.Present.
	folder, err := os.Open(dir)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &dirLock{file, folder}, nil
}

// inUse returns the error for a folder whose lock file is locked by another process.
func inUse(dir string, file *os.File, err error) error {
	// The pid is for people only. The lock itself is the kernel's.
	holder := make([]byte, 20)
	n, _ := file.ReadAt(holder, 0)
	return fmt.Errorf("spool: %s is in use by another process (%s); "+
		"stop it, or give this one its own folder: %w", dir, strings.TrimSpace("pid "+string(holder[:n])), err)
}

func (l *dirLock) release() error { return errors.Join(l.folder.Close(), l.file.Close()) }
