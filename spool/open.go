package spool

import (
	"errors"
	"os"
	"strings"

	"promptspool/spool/disk"
	"promptspool/spool/generation"
	"promptspool/spool/lane"
)

// Open opens the spool in c.Dir, or makes a new one if the folder is empty or absent.
//
// It proves that no acknowledged event is missing. Events that a crash or a damaged file
// hides from Badger are recovered from the raw files if they are whole there. Otherwise
// they are counted (Status.Gaps), logged, and set aside in the folder quarantine.
// Payloads of sealed generations are not read here: Read verifies them.
//
// Open rejects a folder that another process uses, one of another format, and one that
// holds data but no FORMAT. It starts no goroutines except Badger's.
func Open(c Config) (*Spool, error) {
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

	s := &Spool{
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
		errs := []error{err, s.closeAllReading(), lock.release()}
		if s.cursor != nil {
			errs = append(errs, s.cursor.Close())
		}
		if s.lanes != nil {
			s.lanes.Close(ErrClosed)
		}
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// load reads what is in the folder, and repairs what it can. The order of its steps
// matters: the format before anything is touched, room before anything is repaired, and
// the cursor before the generations, whose acknowledged events are not worth proving.
func (s *Spool) load() (err error) {
	if err := checkFormat(s.config.Dir); err != nil {
		return err
	}
	if err := s.sweep(); err != nil {
		return err
	}
	if err := s.guard.freeBallast(sealRoom); err != nil {
		return err
	}

	if s.cursor, err = openCursor(s.path(cursorName)); err != nil {
		return err
	}
	s.frontier, s.next = s.cursor.frontier, max(s.cursor.next, s.cursor.frontier)

	if err := s.loadLosses(); err != nil {
		return err
	}
	if err := s.loadGenerations(); err != nil {
		return err
	}
	s.lanes, err = lane.Open(lane.Config{
		Dir:          s.config.Dir,
		BytesMax:     s.config.BytesMax / laneShare,
		Logger:       s.config.Logger,
		CheckFailed:  s.checkFailed,
		Fail:         s.fail,
		CountLost:    s.addLaneGaps,
		CountDropped: s.addDropped,
		NoteDisk:     s.guard.add,
		Quarantine:   s.quarantine,
	})
	if err != nil {
		return err
	}
	s.guard.giveWay = s.lanes.GiveWay

	s.readMu.Lock()
	defer s.readMu.Unlock()
	err = errors.Join(s.removeAcked(), s.cursor.save(cursorState{s.frontier, s.next}))

	// The metrics must be right before the first scrape. Refreshing them also walks the
	// folder, which tells the guard how much of the disk is used.
	s.refreshMetrics(new(rate))
	s.guard.makeBallast()
	return err
}

// sweep removes what an earlier process had begun to remove or to build.
func (s *Spool) sweep() error {
	entries, err := os.ReadDir(s.config.Dir)
	if err != nil {
		return err
	}

	for _, e := range entries {
		// Folders that were being built are not part of the spool yet, and those being
		// removed no longer are: no waiting event is only there.
		unfinished := strings.HasPrefix(e.Name(), trashPrefix) || strings.HasPrefix(e.Name(), buildPrefix)
		if unfinished || generation.IsUnplaced(s.path(e.Name())) {
			if err := disk.RemoveAll(s.path(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
