package spool

import (
	"errors"
	"os"
	"strings"
)

// Open opens the spool in c.Dir, or makes a new one if the folder is empty or absent. It proves that no acknowledged
// event is missing: what a crash or a damaged file hides from Badger is brought back from the raw files where it is whole, and
// otherwise counted (Status.Gaps), logged and set aside in the folder quarantine. It refuses a folder that another
// process uses, one of a newer format, and one that holds data but no FORMAT.
//
// Open starts no goroutine but Badger's. Payloads of sealed generations are not read: they are verified by Read.
func Open(c Config) (*Spool, error) {
	if err := c.defaults(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, err
	}
	s := &Spool{config: c, lock: lock, closed: make(chan struct{}), failed: make(chan error, 1), grown: make(chan struct{})}
	s.idle.L = &s.mu
	s.guard = newGuard(c)
	s.lanes = lanes{dir: s.path(lanesName), bytesMax: c.BytesMax / laneShare, log: c.Logger, checkFailed: s.checkFailed, fail: s.fail, countLost: s.addLaneGaps, noteDisk: s.guard.add}
	if err := s.load(); err != nil {
		errs := []error{err, s.closeAllReading(), lock.release()}
		if s.cursor != nil {
			errs = append(errs, s.cursor.file.Close())
		}
		s.lanes.close()
		return nil, errors.Join(errs...)
	}
	return s, nil
}

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
	if err := s.loadGenerations(); err != nil {
		return err
	}
	if err := s.lanes.load(s.quarantine); err != nil {
		return err
	}
	s.readMu.Lock()
	defer s.readMu.Unlock()
	err = errors.Join(s.removeAcked(), s.cursor.save(cursorState{s.frontier, s.next}))
	s.refreshMetrics(new(rate)) // before anybody looks at them; it walks as well
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
		if strings.HasPrefix(e.Name(), trashPrefix) || strings.HasPrefix(e.Name(), buildPrefix) {
			if err := os.RemoveAll(s.path(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
