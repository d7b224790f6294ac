package spool

import (
	"errors"
	"fmt"
)

// roll goes on in a generation of this capacity, for seq and what follows, and has the one that was written sealed beside what is
// written then. When it fails, that one is written still. The caller has the turn to commit.
func (s *Spool) roll(seq uint64, capacity int64) error {
	g, err := s.nextGeneration(capacity)
	if err != nil {
		return err
	}
	s.waitForSeal()
	if err := g.place(s.config.Dir, seq); err != nil {
		return s.fail(err)
	}
	g.unsealed, g.begun = true, s.config.Now()
	s.mu.Lock()
	full := s.writing
	s.generations = append(s.generations, g)
	s.writing = g
	s.mu.Unlock()
	if full != nil {
		s.sealInBackground(full)
	}
	return s.checkFailed()
}

// nextGeneration gives the spare one, or makes one.
func (s *Spool) nextGeneration(capacity int64) (*generation, error) {
	if g := s.takeSpare(capacity); g != nil {
		if err := s.guard.admit(0); err != nil {
			return nil, errors.Join(err, g.discard(s.path(g.name)))
		}
		return g, nil
	}
	if err := s.guard.admit(generationRoom(capacity)); err != nil {
		return nil, err
	}
	g, err := makeGeneration(s.path(nextName), capacity, s.storeLog())
	if isFull(err) {
		return nil, s.guard.refuse(err)
	}
	if isBroken(err) {
		return nil, s.fail(err)
	}
	if err != nil {
		return nil, fmt.Errorf("spool: cannot make a new generation: %w", err)
	}
	return g, nil
}

// sealInBackground seals a generation that is full, while the next one is written.
func (s *Spool) sealInBackground(g *generation) {
	done := make(chan struct{})
	s.sealing = done
	go func() {
		defer close(done)
		s.readMu.Lock()
		defer s.readMu.Unlock()
		if err := s.seal(g); err != nil {
			_ = s.fail(err)
			return
		}
		if err := s.removeAcked(); err != nil { // those who acknowledged it could not
			s.config.Logger.Warn("a generation that is acknowledged cannot be removed; it is tried again", "dir", s.config.Dir, "error", err)
		}
	}()
}

// waitForSeal returns when nothing is being sealed. The caller has the turn to commit.
func (s *Spool) waitForSeal() {
	if s.sealing != nil {
		<-s.sealing
		s.sealing = nil
	}
}

// seal ends a generation that was written. With readMu held.
func (s *Spool) seal(g *generation) error {
	err := g.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	g.unsealed = err != nil
	if s.writing == g {
		s.writing = nil
	}
	return err
}

// shrink moves on from a generation that is larger than usual, once all in it is acknowledged, and so gives its room back; it drops a
// spare that nobody needs now. idleAt is the sequence that was the next one a while ago: if it still is, nobody appends. What stands in
// the way now is no error; it is tried again.
func (s *Spool) shrink(idleAt uint64) error {
	s.mu.Lock()
	if s.leading || s.refusalLocked() != nil {
		s.mu.Unlock()
		return nil
	}
	s.leading = true
	idle := s.next == idleAt && s.frontier == s.next
	s.mu.Unlock()
	defer s.handOn()
	if !idle {
		s.dropOldSpare()
		return nil
	}
	s.dropSpare()
	if s.writing == nil || s.writing.capacity <= s.config.GenerationBytes {
		return nil
	}
	if err := s.roll(idleAt, s.config.GenerationBytes); err != nil {
		if errors.Is(err, ErrFailed) {
			return err
		}
		return nil
	}
	s.waitForSeal() // which removes it
	return nil
}
