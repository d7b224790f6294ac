package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"promptspool/spool/disk"
)

const (
	// sealSpace is what must be free to seal or replay a generation: a table of 32,768
	// keys of some 60 bytes, and the small files.
	sealSpace = 4 << 20
	// ballastBytes is the size of a file that is removed when the disk is full and the
	// spool has to be opened or closed.
	ballastBytes = 4 << 20
	// laneShare is the fraction of BytesMax that both lanes together may use: one in this
	// many parts.
	laneShare = 4
	// recheckDelay is how long a refusal holds before the disk is checked again.
	recheckDelay = time.Second

	freeMinDefault      = 64 << 20
	freeMinDefaultShare = 16 // of a small disk
)

// FullError names the bound that leaves no space for new events. errors.Is reports it as
// ErrFull.
type FullError struct {
	Flag  string // that sets the bound, such as "--spool-bytes-max"; "" when the disk itself is full
	Bytes int64  // of disk that would be used; for --spool-free-min, that would be left
	Bound int64
}

// Error returns a message that names the next step.
func (e *FullError) Error() string {
	switch e.Flag {
	case "":
		return "the disk under the spool is full; free space on it"
	case "--spool-free-min":
		return fmt.Sprintf("the disk under the spool is nearly full: it would have %d bytes left, "+
			"and --spool-free-min is %d; free space on it", e.Bytes, e.Bound)
	}
	return fmt.Sprintf("the spool is full: it would take %d bytes of disk, and %s is %d; "+
		"there is space when the server has taken some events, or with a higher bound", e.Bytes, e.Flag, e.Bound)
}

// missing returns how many bytes of disk would have to go.
func (e *FullError) missing() int64 { return max(e.Bytes-e.Bound, e.Bound-e.Bytes) }

// Is reports every FullError as an ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// guard enforces the bounds of disk. It knows what is used from a walk over the folders,
// when the spool is opened and once a second while it runs, and adds what was made since.
// A walk over a long backlog is thousands of files, and has no place in a commit. A
// commit walks only before it is refused, at most once a second, so that nothing is
// refused for files that are already gone.
type guard struct {
	config  Config
	ballast string // path
	// giveWay deletes that many bytes of what is kept only while there is space. It returns
	// false if there are not as many.
	giveWay func(bytes int64) bool

	mu       sync.Mutex
	refusal  error     // why no generation can be made
	until    time.Time // when to check again
	walked   diskUse   // as of the last walk, when made was madeThen
	madeThen int64

	// made counts the bytes of everything made since the spool was opened. It never goes
	// down: what was removed is only seen by the next walk. Not under mu, because the lanes
	// add to it with their lock held, and mu is held while they give way.
	made atomic.Int64

	// othersMu guards what follows.
	othersMu sync.Mutex
	others   int64     // bytes in the data folder outside the spool's
	othersAt time.Time // when they were counted
}

// othersEvery is how often what others keep in the data folder is counted: a sidecar's
// templates may be ten thousand files.
const othersEvery = 10 * time.Second

// diskUse is the bytes of disk blocks of the spool's folder, and of the data folder if
// that is bounded.
type diskUse struct{ spool, data int64 }

func newGuard(c Config) *guard {
	return &guard{config: c, ballast: filepath.Join(c.Dir, ballastName)}
}

// admit returns nil if a generation may take this many bytes of disk and the one before
// it may be sealed, else a *FullError. Admitted bytes count as written.
func (g *guard) admit(bytes int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()

	now := g.config.Now()
	if g.refusal != nil && now.Before(g.until) {
		return g.refusal
	}

	// Log changes only: on a full disk every append comes here.
	err := g.checkLocked(bytes)
	for full := (*FullError)(nil); errors.As(err, &full) && g.giveWay(full.missing()); {
		err = g.checkLocked(bytes)
	}
	if err == nil && g.refusal != nil {
		g.config.Logger.Info("there is space for new events again")
	}
	if err != nil && g.refusal == nil {
		g.config.Logger.Warn("new events are refused; nothing that was accepted is lost", "reason", err)
	}

	if err == nil {
		g.made.Add(bytes)
	}
	g.refusal, g.until = err, now.Add(recheckDelay)
	return err
}

// fitsLocked reports whether the bounds allow this many more bytes, as of the last walk.
func (g *guard) fitsLocked(bytes int64) bool {
	free, freeMin, err := g.free()
	return err == nil && free-bytes >= freeMin && g.overBoundLocked(bytes) == nil
}

// refuse notes that the disk was full although there seemed to be space: another process
// was faster.
func (g *guard) refuse(cause error) error {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.config.Logger.Warn("new events are refused; nothing that was accepted is lost", "reason", cause)
	g.refusal, g.until = errors.Join(&FullError{}, cause), g.config.Now().Add(recheckDelay)
	return g.refusal
}

// walk counts the disk blocks, and returns those of the spool's folder.
func (g *guard) walk() int64 {
	made := g.made.Load()
	use := g.count(false)

	// Files made during the walk may count twice, until the next one. The opposite error,
	// not counting them at all, would let the spool grow beyond its bounds.
	g.mu.Lock()
	defer g.mu.Unlock()
	g.walked, g.madeThen = use, made
	return use.spool
}

// count walks over the spool's folder, and over the rest of the data folder if that is
// due or if fresh asks for it.
func (g *guard) count(fresh bool) (use diskUse) {
	use.spool = disk.Used(g.config.Dir, "")
	if g.config.DiskMax <= 0 {
		return use
	}

	g.othersMu.Lock()
	defer g.othersMu.Unlock()
	if fresh || time.Since(g.othersAt) > othersEvery {
		g.others, g.othersAt = disk.Used(g.config.DataDir, g.config.Dir), time.Now()
	}
	use.data = use.spool + g.others
	return use
}

// add counts bytes that were made, or are about to be.
func (g *guard) add(bytes int64) { g.made.Add(bytes) }

// checkLocked returns why the bounds do not allow this many more bytes, or nil if they
// do.
func (g *guard) checkLocked(bytes int64) error {
	// Before refusing, walk again: files may be gone since the last walk.
	if g.overBoundLocked(bytes) != nil {
		made := g.made.Load()
		g.walked, g.madeThen = g.count(true), made
	}
	if err := g.overBoundLocked(bytes); err != nil {
		return err
	}

	free, freeMin, err := g.free()
	if err != nil {
		return err
	}
	if left := free - bytes; left < freeMin {
		return &FullError{"--spool-free-min", max(0, left), freeMin}
	}
	return nil
}

// overBoundLocked compares this many more bytes with the bounds, as of the last walk.
func (g *guard) overBoundLocked(bytes int64) error {
	bytes += g.made.Load() - g.madeThen
	if used := g.walked.spool + bytes; used > g.config.BytesMax {
		return &FullError{"--spool-bytes-max", used, g.config.BytesMax}
	}
	if used := g.walked.data + bytes; g.config.DiskMax > 0 && used > g.config.DiskMax {
		return &FullError{"--disk-max", used, g.config.DiskMax}
	}
	return nil
}

// free returns how much of the disk may be used, and how much must stay free, which is
// never less than it takes to seal.
func (g *guard) free() (free, freeMin int64, err error) {
	space, err := disk.SpaceAt(g.config.Dir)
	if err != nil {
		return 0, 0, fmt.Errorf("spool: cannot tell the free space of %s: %w", g.config.Dir, err)
	}

	freeMin = g.config.FreeMin
	if freeMin == 0 {
		freeMin = min(freeMinDefault, space.Total/freeMinDefaultShare)
	}
	return space.Free, max(freeMin, sealSpace), nil
}

// FreeMin returns how many bytes of the disk stay free: with less, new events are refused. It is 0 if the disk
// does not tell its size.
func (q *Queue) FreeMin() int64 {
	_, freeMin, _ := q.guard.free()
	return freeMin
}

// freeBallast removes the ballast if less than need is free. It returns an error if that
// is not enough.
func (g *guard) freeBallast(need int64) error {
	// While there is space without it, the ballast stays for the next time.
	free, _, err := g.free()
	if err != nil || free >= need {
		return err
	}

	if err := disk.RemoveAll(g.ballast); err != nil {
		return err
	}
	free, _, err = g.free()
	if err != nil || free >= need {
		return err
	}
	return fmt.Errorf("spool: to put the files in %s in order takes %d bytes of disk, and %d are free; "+
		"free the rest and start again: %w", g.config.Dir, need, free, &FullError{})
}

// makeBallast makes the ballast if it is absent and there is space for it. A spool works
// without it.
func (g *guard) makeBallast() {
	if disk.Exists(g.ballast) {
		return
	}

	g.mu.Lock()
	fits := g.fitsLocked(ballastBytes)
	g.mu.Unlock()
	if !fits {
		return
	}

	file, err := os.OpenFile(g.ballast, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	// With real blocks, or its removal would free nothing. Where none can be reserved, Allocate
	// reads the file as well.
	if err := errors.Join(disk.Allocate(file, ballastBytes), file.Close()); err != nil {
		_ = disk.Remove(g.ballast)
		return
	}
	g.add(ballastBytes)
}
