package queue

import (
	"errors"
	"os"
	"strings"

	"promptspool/spool/disk"
	"promptspool/spool/queue/generation"
	"promptspool/spool/queue/lane"
)

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
