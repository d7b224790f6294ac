package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sealRoom is what must be free when a generation is sealed or replayed: for a table of 32,768 keys of some 60 bytes, and
	// the small files.
	sealRoom = 4 << 20
	// ballastBytes lie in a file of their own, which goes when the disk is full and the spool is to be opened or closed.
	ballastBytes = 4 << 20
	// laneShare: one part in so many of BytesMax is for both lanes.
	laneShare = 4
	// recheckDelay is how long a refusal stands before the disk is looked at again.
	recheckDelay = time.Second

	freeMinDefault      = 64 << 20
	freeMinDefaultShare = 16 // of a small disk
)

// FullError says which bound leaves no room for new events. It is an ErrFull.
type FullError struct {
	Flag  string // that sets the bound, such as "--spool-bytes-max"; "" when the disk itself is full
	Bytes int64  // of disk that would be taken, for --spool-free-min what would be left
	Bound int64
}

// Error names the next step.
func (e *FullError) Error() string {
	switch e.Flag {
	case "":
		return "the disk under the spool is full; free space on it"
	case "--spool-free-min":
		return fmt.Sprintf("the disk under the spool is nearly full: it would have %d bytes left, and --spool-free-min is %d; free space on it", e.Bytes, e.Bound)
	}
	return fmt.Sprintf("the spool is full: it would take %d bytes of disk, and %s is %d; there is room when the server has taken some events, or with a higher bound",
		e.Bytes, e.Flag, e.Bound)
}

// Is makes every FullError an ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// guard watches the bounds and the disk. To look costs a walk over the spool's folder and a statfs; it looks when a
// generation is to be made, and once a second while none can be.
type guard struct {
	config  Config
	ballast string // path

	mu      sync.Mutex
	refusal error     // why no generation can be made
	until   time.Time // when to look again
}

func newGuard(c Config) *guard {
	return &guard{config: c, ballast: filepath.Join(c.Dir, ballastName)}
}

// admit says whether a generation may take so many bytes of disk, and the one before it may be sealed; if not, by a *FullError.
func (g *guard) admit(bytes int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.config.Now()
	if g.refusal != nil && now.Before(g.until) {
		return g.refusal
	}
	err := g.look(bytes)
	if err == nil && g.refusal != nil {
		g.config.Logger.Info("there is room for new events again")
	}
	if err != nil && g.refusal == nil {
		g.config.Logger.Warn("new events are refused; nothing that was accepted is lost", "reason", err)
	}
	g.refusal, g.until = err, now.Add(recheckDelay)
	return err
}

// refuse notes that the disk was full although there seemed to be room: somebody else was quicker.
func (g *guard) refuse(cause error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.Logger.Warn("new events are refused; nothing that was accepted is lost", "reason", cause)
	g.refusal, g.until = errors.Join(&FullError{}, cause), g.config.Now().Add(recheckDelay)
	return g.refusal
}

func (g *guard) look(bytes int64) error {
	if used := diskBytes(g.config.Dir) + bytes; used > g.config.BytesMax {
		return &FullError{"--spool-bytes-max", used, g.config.BytesMax}
	}
	if g.config.DiskMax > 0 {
		if used := diskBytes(g.config.DataDir) + bytes; used > g.config.DiskMax {
			return &FullError{"--disk-max", used, g.config.DiskMax}
		}
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

// free tells how much of the disk may be used, and how much shall stay free: never less than it takes to seal.
func (g *guard) free() (free, freeMin int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(g.config.Dir, &st); err != nil {
		return 0, 0, fmt.Errorf("spool: cannot tell the free space of %s: %w", g.config.Dir, err)
	}
	if freeMin = g.config.FreeMin; freeMin == 0 {
		freeMin = min(freeMinDefault, int64(st.Blocks)*st.Bsize/freeMinDefaultShare)
	}
	return int64(st.Bavail) * st.Bsize, max(freeMin, sealRoom), nil
}

// freeBallast gives the ballast to the disk if less than need is free, and fails if it still is.
func (g *guard) freeBallast(need int64) error {
	free, _, err := g.free()
	if err != nil || free >= need {
		return err
	}
	if err := os.Remove(g.ballast); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if free, _, err = g.free(); err != nil || free >= need {
		return err
	}
	return fmt.Errorf("spool: to put the files in %s in order takes %d bytes of disk, and %d are free; free the rest and start again: %w",
		g.config.Dir, need, free, &FullError{})
}

// makeBallast makes the ballast when it is not there and there is room for it. A spool can do without.
func (g *guard) makeBallast() {
	if exists(g.ballast) {
		return
	}
	free, freeMin, err := g.free()
	if err != nil || free < freeMin+ballastBytes || diskBytes(g.config.Dir)+ballastBytes > g.config.BytesMax {
		return
	}
	file, err := os.OpenFile(g.ballast, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	if err := errors.Join(allocate(file, ballastBytes), file.Close()); err != nil {
		_ = os.Remove(g.ballast)
	}
}
