package spool

import (
	"cmp"
	"slices"
)

// seqRange is the sequences from <= s < end.
type seqRange struct{ from, end uint64 }

// lose counts and logs the sequences from <= s < end as lost, except those that were
// counted before or are below the frontier. The caller must not hold mu.
func (s *Spool) lose(from, end uint64, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	from = max(from, s.frontier)
	s.gaps = slices.DeleteFunc(s.gaps, func(g seqRange) bool { return g.end <= s.frontier })

	// Reading finds the same gap again and again. Count only the parts between the known
	// gaps, which are in order and apart.
	known := s.gaps
	for _, g := range known {
		if from < g.end && g.from < end {
			s.countGapLocked(seqRange{from, g.from}, why)
			from = g.end
		}
	}
	s.countGapLocked(seqRange{from, end}, why)
	slices.SortFunc(s.gaps, func(a, b seqRange) int { return cmp.Compare(a.from, b.from) })
}

// countGapLocked counts a range that overlaps no known gap. It ignores an empty one.
func (s *Spool) countGapLocked(g seqRange, why string) {
	if g.from >= g.end {
		return
	}

	n := g.end - g.from
	s.gaps = append(s.gaps, g)
	s.addGapsLocked(n)
	s.config.Logger.Error("events that were acknowledged to the app are lost",
		"events", n, "first", g.from, "last", g.end-1, "reason", why, "dir", s.config.Dir)
}

// afterLostLocked returns the first sequence >= from that is not counted as lost.
func (s *Spool) afterLostLocked(from uint64) uint64 {
	for _, g := range s.gaps {
		if g.from <= from && from < g.end {
			from = g.end
		}
	}

	return from
}

// addGapsLocked adds to the count of lost events.
func (s *Spool) addGapsLocked(events uint64) {
	s.gapEvents += events
	s.config.Metrics.SpoolGaps.Add(float64(events))
}

// addLaneGaps adds events that a lane lost to the same count. The caller must not hold
// mu.
func (s *Spool) addLaneGaps(events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addGapsLocked(uint64(events))
}
