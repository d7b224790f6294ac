package queue

import (
	"time"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/generation"
)

// loadGenerations proves every generation, counts what waits in it, and reports every
// sequence that is missing between them.
func (q *Queue) loadGenerations() error {
	places, err := generation.In(q.config.Dir)
	if err != nil {
		return err
	}
	q.frontier, q.next = bounds(q.cursor, places)

	// No lock is needed here or below: no other goroutine has the spool until Open
	// returns.
	// Everything below is counted or was acknowledged.
	proved := q.frontier
	for _, at := range places {
		p := proof{spool: q, name: at.Name, first: at.First, end: at.Follower, newest: at.Follower == 0}
		if p.newest {
			p.end = max(q.next, p.first)
		}

		// A hole between two generations was a generation that is gone. One in which
		// nothing waits is not worth proving.
		q.lose(proved, p.first, "the generation that held it is gone")
		proved = max(proved, p.end)
		if !p.newest && p.end <= q.frontier {
			err = q.trash(p.name)
		} else {
			err = p.run()
		}

		// Only after the newer edition was proved, because it may turn out to lack
		// events.
		for _, name := range at.Older {
			if err == nil {
				err = q.setAsideOlder(name, p.missing)
			}
		}
		if err != nil {
			return err
		}
		proved, q.next = max(proved, p.end), max(q.next, p.end)
	}

	q.lose(proved, q.next, "the generation that held it is gone")
	return nil
}

// bounds returns the lowest sequence that is not acknowledged and the lowest that is not
// committed, as far as the cursor tells.
func bounds(cursor disk.Slots, places []generation.Place) (frontier, next uint64) {
	// Sequences start at 1.
	frontier, next = max(1, cursor.Numbers[0]), max(1, cursor.Numbers[1])

	// The cursor may be older than the last removal. Sending events again is harmless; a
	// false alarm about delivered ones is not.
	if len(places) > 0 && !cursor.Sure() {
		frontier = max(frontier, places[0].First)
	}
	return frontier, max(next, frontier)
}

// proof is the examination of one generation when the spool is opened.
type proof struct {
	spool  *Queue
	name   string
	first  uint64
	end    uint64 // sequences first <= s < end were given out; for the newest generation, as far as known
	newest bool
	gone   bool // nothing of it is left

	missing bool // it lacks events that wait

	evidence *generation.Evidence // of the raw files; nil until they are examined
}

// run seals the generation, counts what it holds and what it lost, and adds it to the
// spool's.
func (p *proof) run() error {
	s := p.spool
	if err := p.seal(); err != nil {
		return err
	}

	// Only a generation whose keys do not tell the whole story costs a look at its raw
	// files.
	w, err := p.walk()
	from := max(p.first, s.frontier)
	if err != nil || len(w.runs) == 0 || len(w.holes(from, p.end)) > 0 {
		w, err = p.recover(w, err)
		if err != nil {
			return err
		}
	}

	p.missing = len(w.holes(max(p.first, s.frontier), p.end)) > 0
	for _, hole := range w.holes(p.first, p.end) {
		s.lose(hole.From, hole.End, "neither its key nor a whole copy is left")
	}

	if p.gone {
		return nil
	}
	if len(w.runs) == 0 && p.end == p.first {
		// Nothing was ever in it.
		return s.trash(p.name)
	}

	// Generations come in order, so the first one with waiting events has the oldest.
	if s.usage.Events == 0 {
		s.oldestAt = w.firstAt
	}
	s.usage.AddAll(w.usage, 1)
	if !w.lastAt.IsZero() {
		s.newestAt = w.lastAt
	}
	s.generations = append(s.generations, &generationState{
		name:    p.name,
		first:   p.first,
		last:    p.end - 1,
		firstAt: w.firstAt,
	})
	return nil
}

// seal lets Badger replay a generation that was not closed, or rebuilds it if Badger
// would lose something by that.
func (p *proof) seal() error {
	dir := p.spool.path(p.name)
	sealed, err := generation.IsSealed(dir)
	if err != nil || sealed {
		return err
	}

	if err := p.examine(); err != nil {
		return err
	}
	if p.evidence.Agrees(p.first) {
		err := generation.Replay(dir, p.spool.config.GenerationBytes, p.spool.storeLog())
		if err == nil {
			return nil
		}
		// The raw files have every event, so a failed replay loses none.
		p.spool.config.Logger.Error("a generation cannot be replayed and is rebuilt",
			"generation", dir, "error", err)
	}
	return p.rebuild()
}

// recover handles a generation that cannot be read, or whose keys w lack events: it
// rebuilds it if the raw files hold more.
func (p *proof) recover(w walked, cause error) (walked, error) {
	if p.gone {
		return w, nil
	}

	if err := p.examine(); err != nil {
		return w, err
	}

	// A rebuild costs disk and time, so do it only if it brings back an event.
	gain := false
	for _, hole := range w.holes(max(p.first, p.spool.frontier), p.end) {
		gain = gain || p.evidence.NextWhole(hole.From, hole.End) < hole.End
	}
	if cause == nil && !gain {
		return w, nil
	}

	if err := p.rebuild(); err != nil || p.gone {
		return walked{}, err
	}
	return p.walk()
}

// examine reads the raw files, once.
func (p *proof) examine() error {
	if p.evidence != nil {
		return nil
	}

	ev, err := p.spool.examine(p.name)
	if err != nil {
		return err
	}
	p.evidence = &ev

	// The last commits before a crash are beyond the saved cursor: only these files name
	// them.
	if p.newest {
		p.spool.noteUncertain(ev.DropUncertain(p.spool.next), p.name)
		p.end = max(p.end, ev.End(p.first))
	}
	return nil
}

// rebuild replaces the generation by its next edition, or by nothing if no event in it is
// whole.
func (p *proof) rebuild() error {
	if p.evidence.Len() == 0 {
		p.gone = true
		if p.end > max(p.first, p.spool.frontier) {
			return p.spool.quarantine(p.name)
		}
		// Nothing was ever in it.
		return p.spool.trash(p.name)
	}

	name, err := p.spool.rebuild(p.name, *p.evidence, max(p.first, p.spool.frontier), p.end)
	p.name = name
	return err
}

// walked is what the keys of a generation say.
type walked struct {
	runs            []frame.Range // sequences that are there
	usage           frame.Usage   // of those not acknowledged
	firstAt, lastAt time.Time
}

// walk reads the keys of the sealed generation.
func (p *proof) walk() (walked, error) {
	var w walked
	if p.gone {
		return w, nil
	}
	open, err := generation.Open(p.spool.path(p.name), p.spool.storeLog())
	if err != nil {
		return w, err
	}

	// Acknowledged events are part of the runs, because they prove the sequence, but not
	// of the usage.
	frontier := p.spool.frontier
	err = open.Walk(p.first, func(k frame.EventKey) bool {
		if n := len(w.runs); n > 0 && w.runs[n-1].End == k.Seq {
			w.runs[n-1].End++
		} else {
			w.runs = append(w.runs, frame.Range{From: k.Seq, End: k.Seq + 1})
		}

		if k.Seq >= frontier {
			w.usage.Add(k.Key, 1, int64(k.Bytes))
			if w.firstAt.IsZero() {
				w.firstAt = k.At
			}
		}
		w.lastAt = k.At
		return true
	})
	if err != nil {
		// The database stays open: closing one that met a fault could wait forever.
		return walked{}, err
	}

	if n := len(w.runs); n > 0 && p.newest {
		p.end = max(p.end, w.runs[n-1].End)
	}
	return w, open.Close()
}

// holes returns the sequences from <= s < end that are not there.
func (w walked) holes(from, end uint64) []frame.Range {
	return without(frame.Range{From: from, End: end}, w.runs)
}
