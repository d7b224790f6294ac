package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"promptspool/metrics"
)

// What Append and Read answer beside errors of the disk.
var (
	// ErrFull: there is no room for more events; a *FullError says which bound was met. Nothing was stored, nothing is lost; try
	// again in a second or later.
	ErrFull = errors.New("the spool has no room for new events")
	// ErrClosed: the spool is closed or closing. What waited in the queue was not stored.
	ErrClosed = errors.New("the spool is closed")
	// ErrFailed: a commit or fsync failed. The spool takes nothing more until the process starts again, see Failed.
	ErrFailed = errors.New("the spool failed and takes nothing more; restart promptspool once the disk is well")
)

// Config says where a spool lies and how large it may grow. Only Dir is required.
type Config struct {
	// Dir is the spool's folder, created 0700 when absent. Nothing else may live in it.
	Dir string
	// BytesMax bounds the disk blocks of everything in Dir; 0 means 1 GiB. A generation is made, with all the room that it will
	// ever need, only within this bound; else Append fails with ErrFull. Both lanes together may take a quarter of it.
	BytesMax int64
	// FreeMin is how much of the disk stays free, of what a user without privileges may use: below it no generation is made.
	// 0 means 64 MiB, or a sixteenth of a disk of less than 1 GiB.
	FreeMin int64
	// DataDir and DiskMax bound the disk blocks of a folder that Dir lies in, together with all that others keep there.
	// DiskMax 0 means no such bound.
	DataDir string
	DiskMax int64
	// GenerationBytes is the size at which writing moves on to a new generation, which is also the grain in which disk space
	// comes back; 0 means 16 MiB or, if that is less, a sixteenth of BytesMax; at most 1 GiB. A commit that is larger has a
	// generation of its own.
	GenerationBytes int64
	// Logger gets damage as errors, Badger's own words at debug. nil means slog.Default.
	Logger *slog.Logger
	// Metrics: nil means metrics that nobody sees.
	Metrics *metrics.Metrics
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (c *Config) defaults() error {
	if c.Dir == "" {
		return errors.New("spool: Config.Dir is empty; give the spool a folder")
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return err
	}
	if c.BytesMax == 0 {
		c.BytesMax = 1 << 30
	}
	if c.GenerationBytes == 0 {
		c.GenerationBytes = max(1<<20, min(16<<20, c.BytesMax/16))
	}
	if c.BytesMax < 0 || c.FreeMin < 0 || c.DiskMax < 0 || c.GenerationBytes < 0 || c.GenerationBytes > 1<<30 {
		return fmt.Errorf("spool: one of BytesMax %d, FreeMin %d, DiskMax %d, GenerationBytes %d is out of bounds",
			c.BytesMax, c.FreeMin, c.DiskMax, c.GenerationBytes)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = metrics.New("sidecar", "")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// Entry is one event as the spool keeps it.
type Entry struct {
	Seq  uint64    // its place in the order of all events; from 1, without gaps
	Key  uint32    // the number of the key that it came with
	At   time.Time // when it was appended, UTC
	Data []byte    // owned by the receiver
}

// Spool is a durable queue of events on one disk. All methods may be called at the same time by any number of goroutines.
//
// Locks are taken in this order: the turn to commit (leading), readMu, mu.
type Spool struct {
	config Config
	lock   *dirLock

	closed chan struct{} // closed by Close
	failed chan error    // holds the reason until somebody takes it

	// readMu guards all open databases but the lanes: who reads, opens, closes or removes a generation holds it. A commit
	// never does: it writes to the newest generation, which whoever has the turn to commit leaves before it is sealed.
	readMu  sync.Mutex
	reading []*generation // the sealed generations that are open for reading, at most readingMax; the one that was used last is last
	raw     rawFiles      // the last damaged one that was read
	cursor  *cursor

	lanes lanes  // has a lock of its own
	guard *guard // as well

	// Owned by who has the turn to commit.
	framer  framer
	spare   *spare
	sealing chan struct{} // closed when the generation before the one that is written is sealed

	mu           sync.Mutex
	idle         sync.Cond     // on mu: leading became false, or the spool failed
	grown        chan struct{} // closed and replaced when next grows
	closing      bool
	failure      error    // why the spool failed; nil while it is well
	refused      error    // why nothing more is taken, while what there is can be delivered
	queue        []*write // appends that wait for a commit
	leading      bool     // somebody commits, or was told to
	committing   int      // how many appends are being committed
	crowd        crowd
	commitBegan  time.Time     // when the last commit began
	gatherTarget int           // how many who waits in gather waits for
	gathered     chan struct{} // closed when so many wait; nil when nobody waits for them
	frontier     uint64        // the lowest sequence that is not acknowledged
	next         uint64        // the lowest sequence that is not committed
	newestAt     time.Time
	oldestAt     time.Time     // of the event at the frontier, or the next one after it
	generations  []*generation // in order; the last one may be written
	writing      *generation   // that one, else nil; changed by who has the turn to commit
	usage        usage         // what waits, also what is being committed
	appended     int64         // bytes committed since the spool was opened
	gaps         []seqRange    // what was counted as lost
	gapEvents    uint64
	uncertain    uint64 // events missing that may never have been answered
}

// path of a file or folder of the spool.
func (s *Spool) path(elements ...string) string {
	return filepath.Join(append([]string{s.config.Dir}, elements...)...)
}

func (s *Spool) storeLog() storeLog { return storeLog{s.config.Logger, s.fail} }

// Failed delivers the reason, once, when a commit or fsync failed. The process must end then: what a failed fsync left
// in the page cache cannot be trusted, only what the next start reads from the disk.
func (s *Spool) Failed() <-chan error { return s.failed }

// fail makes err the end of this spool, and returns why the spool failed: the first error wins. Without mu held.
func (s *Spool) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = fmt.Errorf("%w: %w", ErrFailed, err)
		s.failed <- s.failure
		s.refuseQueueLocked(s.failure) // whoever leads may hang in a commit on the bad disk
		s.idle.Broadcast()
		s.config.Logger.Error("the spool failed; restart promptspool once the disk is well", "dir", s.config.Dir, "error", err)
	}
	return s.failure
}

// stopAccepting ends the taking of events: what is synced may not be on the disk. What was accepted
// is delivered, as far as it can be read; so the process goes on. It returns the refusal. Without
// mu held.
func (s *Spool) stopAccepting(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = fmt.Errorf("%w: %w", ErrFailed, cause)
		s.config.Logger.Error("the spool takes nothing more; what it holds is still delivered. Restart promptspool once the disk is well",
			"dir", s.config.Dir, "error", cause)
	}
	return s.refused
}

// Ready returns why the spool takes no events until a restart; nil while it does.
func (s *Spool) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusalLocked()
}

// checkFailed returns why the spool failed, nil while it is well. Without mu held.
func (s *Spool) checkFailed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// refusalLocked is why nothing can be appended, or nil. With mu held.
func (s *Spool) refusalLocked() error {
	if s.closing {
		return ErrClosed
	}
	if s.failure == nil {
		return s.refused
	}
	return s.failure
}

// Close ends the spool: everybody who waits in Append or Read gets ErrClosed, a commit under way ends in order, the cursor
// is synced. It is safe to call twice; the second call does nothing.
//
// A spool that failed is left as a crash would leave it: to close its databases could hang on the bad disk, and would
// throw away the logs that the next start needs to tell what is whole. So is one whose folder went away, and so is a generation for whose table the disk has no room.
func (s *Spool) Close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil
	}
	s.closing = true
	close(s.closed)
	s.refuseQueueLocked(ErrClosed)
	for s.leading && s.failure == nil {
		s.idle.Wait()
	}
	failure, refused := s.failure, s.refused
	s.mu.Unlock()
	if failure != nil || refused != nil {
		return s.abort()
	}
	s.waitForSeal()
	s.dropSpare()
	if s.checkFailed() != nil {
		return s.abort()
	}

	s.readMu.Lock()
	defer s.readMu.Unlock()
	state := cursorState{s.frontier, s.next} // nobody changes them any more
	errs := []error{s.cursor.save(state), s.closeAllReading()}
	s.lanes.close()
	if s.writing != nil {
		if err := s.guard.freeBallast(sealRoom); err != nil {
			s.config.Logger.Warn("the spool stops without putting its files in order; the next start does it, and needs room", "error", err)
		} else {
			errs = append(errs, s.seal(s.writing))
		}
	}
	return errors.Join(append(errs, s.cursor.file.Close(), s.lock.release())...)
}

// abort ends a spool that failed. Somebody may hang in a commit or a seal on the bad disk, with readMu: nobody waits for that.
func (s *Spool) abort() error {
	if s.readMu.TryLock() {
		defer s.readMu.Unlock()
		_ = s.closeAllReading()
		s.lanes.close()
		_ = s.cursor.file.Close()
	}
	return s.lock.release()
}
