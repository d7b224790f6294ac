package spool

import (
	"errors"
	"fmt"
)

// moveOn seals the generation that is written and makes one of this capacity for seq and what follows. The caller has the turn to
// commit.
func (s *Spool) moveOn(seq uint64, capacity int64) error {
	if err := s.guard.admit(generationRoom(capacity)); err != nil {
		return err
	}
	s.readMu.Lock()
	defer s.readMu.Unlock()
	if s.writing != nil {
		if err := s.seal(s.writing); err != nil {
			return s.fail(err)
		}
	}
	g := &generation{name: generationName(seq, 0), first: seq, last: seq - 1, capacity: capacity}
	db, err := createGeneration(generationOptions(s.path(g.name), capacity, s.storeLog()), capacity)
	if isFull(err) {
		return s.guard.refuse(err)
	}
	if isBroken(err) {
		return s.fail(err)
	}
	if err != nil {
		return fmt.Errorf("spool: cannot make a new generation; free space on its disk: %w", err)
	}
	g.db = db
	if g.logs, err = openLogs(s.path(g.name)); err != nil {
		return s.fail(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generations = append(s.generations, g)
	s.writing = g
	return nil
}

// seal ends the generation that is written. With readMu held.
func (s *Spool) seal(g *generation) error {
	err := errors.Join(closeSealed(g.db), g.logs.close())
	g.db, g.logs = nil, logs{}
	s.mu.Lock()
	s.writing = nil
	s.mu.Unlock()
	return err
}

// shrink moves on from a generation that was made for a commit larger than usual, once all in it is acknowledged, and so gives its
// room back. idleAt is the sequence that was the next one a while ago: if it still is, nobody appends. What stands in the way now is
// no error; it is tried again.
func (s *Spool) shrink(idleAt uint64) error {
	s.mu.Lock()
	idle := !s.leading && s.refusal() == nil && s.next == idleAt && s.frontier == s.next
	if !idle || s.writing == nil || s.writing.capacity <= s.config.GenerationBytes {
		s.mu.Unlock()
		return nil
	}
	s.leading = true
	s.mu.Unlock()
	defer s.handOn()
	if err := s.moveOn(idleAt, s.config.GenerationBytes); err != nil {
		if errors.Is(err, ErrFailed) {
			return err
		}
		return nil
	}
	s.readMu.Lock()
	defer s.readMu.Unlock()
	return s.removeAcked()
}
