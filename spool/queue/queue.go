package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"promptspool/metrics"
	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/generation"
	"promptspool/spool/queue/lane"
	"promptspool/spool/rawlog"
)

// Errors that Append and Read return, apart from errors of the disk.
var (
	// ErrFull means that the spool has no space for more events; a *FullError names the
	// bound. Nothing was stored and nothing is lost. Try again in a second or later.
	ErrFull = errors.New("the spool has no space for new events")
	// ErrClosed means that the spool is closed or closing. Queued events were not stored.
	ErrClosed = errors.New("the spool is closed")
	// ErrFailed means that a commit or fsync failed. The spool accepts nothing more until
	// the process is restarted, see Failed.
	ErrFailed = errors.New("the spool failed and takes nothing more; restart promptspool once the disk is well")
)

// Config holds where a spool is and how large it may grow. Only Dir is required.
type Config struct {
	// Dir is the spool's folder. It is created with mode 0700 if absent. Nothing else may
	// be in it.
	Dir string
	// BytesMax bounds the disk blocks of everything in Dir; 0 means 1 GiB. A generation
	// is made, with all the space that it will ever need, only within this bound. Beyond
	// it Append fails with ErrFull. The two lanes together may use a quarter of it.
	BytesMax int64
	// FreeMin is how much of the disk, as seen by an unprivileged user, must stay free.
	// No generation is made below it. 0 means 64 MiB, or a sixteenth of a disk of less
	// than 1 GiB.
	FreeMin int64
	// DataDir and DiskMax bound the disk blocks of a folder around Dir, including
	// everything that others keep there. DiskMax 0 means no such bound.
	DataDir string
	DiskMax int64
	// GenerationBytes is the size at which writing moves to a new generation, and the
	// unit in which disk space is freed. 0 means 16 MiB or a sixteenth of BytesMax,
	// whichever is less; the maximum is 1 GiB. A larger commit gets its own generation.
	GenerationBytes int64
	// Logger gets damage as errors, and Badger's own messages at debug level. nil means
	// slog.Default.
	Logger *slog.Logger
	// Metrics are updated by the spool. nil means metrics that are not collected.
	Metrics *metrics.Metrics
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (c *Config) defaults() error {
	if c.Dir == "" {
		return errors.New("spool: Config.Dir is empty; give the spool a folder")
	}
	var err error
	c.Dir, err = filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	// In the same form as Dir, which a walk over the data folder has to recognise.
	if c.DataDir != "" {
		c.DataDir, err = filepath.Abs(c.DataDir)
		if err != nil {
			return err
		}
	}

	if c.BytesMax == 0 {
		c.BytesMax = 1 << 30
	}
	if c.GenerationBytes == 0 {
		c.GenerationBytes = max(1<<20, min(16<<20, c.BytesMax/16))
	}
	if c.BytesMax < 0 || c.FreeMin < 0 || c.DiskMax < 0 || c.GenerationBytes < 0 || c.GenerationBytes > 1<<30 {
		return fmt.Errorf("spool: one of BytesMax %d, FreeMin %d, DiskMax %d, GenerationBytes %d "+
			"is out of bounds", c.BytesMax, c.FreeMin, c.DiskMax, c.GenerationBytes)
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

// Entry is one event as the spool stores it.
type Entry = frame.Entry

// Queue is a durable queue of events on one disk.
//
// All methods are safe for concurrent use. Locks are taken in this order: the lead,
// readMu, mu.
//
//   - The lead is held by the one goroutine that commits (leading is true). It is passed
//     on from writer to writer, so no lock is held during an fsync.
//   - readMu guards the open databases.
//   - mu guards the counters and the queue, and is held only briefly. Functions whose
//     names end in Locked must be called with it held.
type Queue struct {
	config Config
	lock   *dirLock

	closed chan struct{} // closed by Close
	failed chan error    // holds the reason of a failure until it is received

	// readMu guards all open databases except those of the lanes: hold it to read, open,
	// close or remove a generation. A commit does not need it. It writes to the newest
	// generation, which the leader leaves before it is sealed.
	readMu sync.Mutex
	// reading are the sealed generations that are open for reading, at most readingMax.
	// The most recently used one is last.
	reading []*generationState
	raw     rawFiles // of the damaged generation that was read last
	// cursor stores on disk how far the spool was acknowledged: frontier, and next at the time
	// of the save.
	cursor disk.Slots

	lanes *lane.Lanes // has its own lock; nil until Open has loaded them
	guard *guard      // has its own lock

	// Owned by the leader: closed when the generation before the current one is sealed.
	sealing chan struct{}

	mu      sync.Mutex
	idle    sync.Cond     // on mu: leading became false, or the spool failed
	grown   chan struct{} // closed and replaced when next grows
	closing bool
	failure error // why the spool failed; nil while it works
	refused error // why no more events are accepted, although stored ones can still be delivered

	queue      []*write // appends that wait for a commit
	leading    bool     // a goroutine is committing, or was told to
	committing int      // how many appends are being committed

	frontier uint64 // the lowest sequence that is not acknowledged
	next     uint64 // the lowest sequence that is not committed
	newestAt time.Time
	oldestAt time.Time // of the event at the frontier, or of the first one after it

	generations []*generationState // in order; the last one may be the one that is written
	writing     *generationState   // that one, else nil; changed by the leader

	usage     frame.Usage   // of the events that wait, including those being committed
	appended  int64         // bytes committed since the spool was opened
	gaps      []frame.Range // counted as lost
	recorded  []frame.Range // written down as lost, in this process or an earlier one
	gapEvents uint64
	dropped   int    // dead letters of limits that were dropped
	uncertain uint64 // missing events that may never have been acknowledged to the app
}

// path returns the path of a file or folder in the spool's folder.
func (q *Queue) path(elements ...string) string {
	return filepath.Join(append([]string{q.config.Dir}, elements...)...)
}

// storeLog passes Badger's log to ours. A memtable that cannot be written out fails the queue: Badger only logs
// that, and tries again forever.
func (q *Queue) storeLog() rawlog.Log {
	fail := func(err error) { _ = q.fail(err) }
	return rawlog.Log{Logger: q.config.Logger, Failure: "error flushing memtable", Fail: fail}
}

// Failed delivers the reason, once, when a commit or fsync failed.
//
// The process must end then: what a failed fsync left in the page cache cannot be
// trusted, only what the next start reads from the disk.
func (q *Queue) Failed() <-chan error { return q.failed }

// fail puts the spool out of service because of err, and returns the reason of the
// failure. The first error wins. The caller must not hold mu.
func (q *Queue) fail(err error) error {
	// The error may have made the file system read-only. A restart could not even deliver what
	// the spool holds.
	err = errors.Join(err, disk.Present(q.lock.folder, q.config.Dir))
	if disk.IsReadOnly(err) {
		return q.stopAccepting(err)
	}

	q.mu.Lock()
	defer q.mu.Unlock()

	if q.failure == nil {
		q.failure = fmt.Errorf("%w: %w", ErrFailed, err)
		q.failed <- q.failure          // has space for one, and there is only one first error
		q.refuseQueueLocked(q.failure) // the leader may hang in a commit on the bad disk
		q.idle.Broadcast()
		q.config.Logger.Error("the spool failed; restart promptspool once the disk is well",
			"dir", q.config.Dir, "error", err)
	}
	return q.failure
}

// stopAccepting refuses all new events from now on, because what is synced may not be on
// the disk.
//
// The process continues, because accepted events can still be delivered as far as they
// can be read. It returns the refusal. The caller must not hold mu.
func (q *Queue) stopAccepting(cause error) error {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.refused == nil {
		q.refused = fmt.Errorf("%w: %w", ErrFailed, cause)
		q.config.Logger.Error("the spool takes nothing more; what it holds is still delivered. "+
			"Restart promptspool once the disk is well", "dir", q.config.Dir, "error", cause)
	}
	return q.refused
}

// Ready returns why the spool accepts no events until a restart, or nil while it does.
func (q *Queue) Ready() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refusalLocked()
}

// checkFailed returns why the spool failed, or nil while it works. The caller must not
// hold mu.
func (q *Queue) checkFailed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failure
}

// refusalLocked returns why nothing can be appended, or nil.
func (q *Queue) refusalLocked() error {
	if q.closing {
		return ErrClosed
	}
	if q.failure == nil {
		return q.refused
	}
	return q.failure
}

// Close waits for the commit in progress, syncs the cursor and closes the spool.
//
// Append and Wait calls that are waiting return ErrClosed. A second Close does nothing.
//
// A spool that failed, or whose folder disappeared, is left as a crash would leave it:
// closing its databases could hang on the bad disk, and would discard the logs that tell
// the next start what is whole. The newest generation is left unsealed, too, when the
// disk has no space for its table.
func (q *Queue) Close() error {
	q.mu.Lock()
	if q.closing {
		q.mu.Unlock()
		return nil
	}
	q.closing = true
	close(q.closed)
	q.refuseQueueLocked(ErrClosed)

	// After a failure the leader may never come back, so do not wait for it then.
	for q.leading && q.failure == nil {
		q.idle.Wait()
	}
	failure, refused := q.failure, q.refused
	q.mu.Unlock()

	if failure != nil || refused != nil {
		return q.abort()
	}

	// No new leader can appear while closing is set, so what the leader owns is ours now.
	q.waitForSeal()
	if q.checkFailed() != nil {
		return q.abort()
	}

	q.readMu.Lock()
	defer q.readMu.Unlock()

	// Without mu: Ack and settle are over.
	errs := []error{q.cursor.Save([2]uint64{q.frontier, q.next}), q.closeAllReading()}
	q.lanes.Close(ErrClosed)

	// Sealing writes a table, which on a full disk would be SIGBUS inside Badger.
	if q.writing != nil {
		if err := q.guard.freeBallast(sealSpace); err != nil {
			q.config.Logger.Warn("the spool stops without putting its files in order; "+
				"the next start does it, and needs space", "error", err)
		} else {
			errs = append(errs, q.seal(q.writing))
		}
	}
	return errors.Join(append(errs, q.cursor.Close(), q.lock.release())...)
}

// abort closes what it can of a spool that failed. Another goroutine may hang in a commit
// or a seal on the bad disk while it holds readMu, so abort does not wait for readMu.
func (q *Queue) abort() error {
	if q.readMu.TryLock() {
		defer q.readMu.Unlock()
		_ = q.closeAllReading()
		q.lanes.Close(ErrClosed)
		_ = q.cursor.Close()
	}
	return q.lock.release()
}

// Open opens the spool in c.Dir, or makes a new one if the folder is empty or absent.
//
// It proves that no acknowledged event is missing. Events that a crash or a damaged file
// hides from Badger are recovered from the raw files if they are whole there. Otherwise
// they are counted (Status.Gaps), logged, and set aside in the folder quarantine.
// Payloads of sealed generations are not read here: Read verifies them.
//
// Open rejects a folder that another process uses, one of a newer format, and one that
// holds data but no FORMAT. It starts no goroutines except Badger's.
func Open(c Config) (*Queue, error) {
	if err := c.defaults(); err != nil {
		return nil, err
	}

	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	// Before anything is read: another process may be changing it.
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, err
	}

	s := &Queue{
		config: c,
		lock:   lock,
		closed: make(chan struct{}),
		failed: make(chan error, 1),
		grown:  make(chan struct{}),
	}
	s.idle.L = &s.mu
	s.guard = newGuard(c)

	// Everything that load opened must be closed, or a second try would meet our own
	// lock.
	if err := s.load(); err != nil {
		errs := []error{err, s.closeAllReading(), lock.release(), s.cursor.Close()}
		if s.lanes != nil {
			s.lanes.Close(ErrClosed)
		}
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// load reads what is in the folder, and repairs what it can. The order of its steps
// matters: the format before anything is touched, space before anything is repaired, and
// the cursor before the generations, whose acknowledged events are not worth proving.
func (q *Queue) load() (err error) {
	if err := checkFormat(q.config.Dir); err != nil {
		return err
	}
	if err := q.sweep(); err != nil {
		return err
	}
	if err := q.guard.freeBallast(sealSpace); err != nil {
		return err
	}

	q.cursor, err = disk.OpenSlots(q.path(cursorName), cursorMagic)
	if err != nil {
		return err
	}
	if err := q.loadLosses(); err != nil {
		return err
	}
	if err := q.loadGenerations(); err != nil {
		return err
	}
	q.lanes, err = lane.Open(lane.Config{
		Dir:          q.config.Dir,
		BytesMax:     q.config.BytesMax / laneShare,
		Logger:       q.config.Logger,
		CheckFailed:  q.checkFailed,
		Fail:         q.fail,
		CountLost:    q.addLaneGaps,
		CountDropped: q.addDropped,
		NoteDisk:     q.guard.add,
		Quarantine:   q.quarantine,
	})
	if err != nil {
		return err
	}
	q.guard.giveWay = q.lanes.GiveWay

	q.readMu.Lock()
	defer q.readMu.Unlock()
	err = errors.Join(q.removeAcked(), q.cursor.Save([2]uint64{q.frontier, q.next}))

	// The metrics must be right before the first scrape. Refreshing them also walks the
	// folder, which tells the guard how much of the disk is used.
	q.refreshMetrics(new(rate))
	q.guard.makeBallast()
	return err
}

// sweep removes what an earlier process had begun to remove or to build.
func (q *Queue) sweep() error {
	entries, err := os.ReadDir(q.config.Dir)
	if err != nil {
		return err
	}

	for _, e := range entries {
		// Folders that were being built are not part of the spool yet, and those being
		// removed no longer are: no waiting event is only there.
		unfinished := strings.HasPrefix(e.Name(), trashPrefix) || strings.HasPrefix(e.Name(), buildPrefix)
		if unfinished || generation.IsUnplaced(q.path(e.Name())) {
			if err := disk.RemoveAll(q.path(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
