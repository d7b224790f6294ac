package spool

import (
	"cmp"
	"slices"

	"promptspool/spool/frame"
)

// lose counts and logs the sequences from <= s < end as lost, except those that were
// counted before or are below the frontier. The caller must not hold mu.
func (s *Spool) lose(from, end uint64, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	from = max(from, s.frontier)
	s.gaps = slices.DeleteFunc(s.gaps, func(g frame.Range) bool { return g.End <= s.frontier })

	// Reading finds the same gap again and again, and so does each start.
	lost := frame.Range{From: from, End: end}
	for _, g := range without(lost, s.gaps) {
		s.countGapLocked(g, why)
	}
	for _, g := range without(lost, s.recorded) {
		s.recordLocked(RecordedLoss{First: g.From, Last: g.End - 1, Events: g.End - g.From, Reason: why})
		s.recorded = append(s.recorded, g)
	}

	sortRanges(s.gaps)
	sortRanges(s.recorded)
}

// countGapLocked counts a range that overlaps no known gap.
func (s *Spool) countGapLocked(g frame.Range, why string) {
	n := g.End - g.From
	s.gaps = append(s.gaps, g)
	s.addGapsLocked(n)
	s.config.Logger.Error("events that were acknowledged to the app are lost",
		"events", n, "first", g.From, "last", g.End-1, "reason", why, "dir", s.config.Dir)
}

func sortRanges(ranges []frame.Range) {
	slices.SortFunc(ranges, func(a, b frame.Range) int { return cmp.Compare(a.From, b.From) })
}

// afterLostLocked returns the first sequence >= from that is not counted as lost.
func (s *Spool) afterLostLocked(from uint64) uint64 {
	// The gaps are in order, so one pass is enough even where they touch.
	for _, g := range s.gaps {
		if g.From <= from && from < g.End {
			from = g.End
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
func (s *Spool) addLaneGaps(lane Lane, events int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addGapsLocked(uint64(events))
	s.recordLocked(RecordedLoss{Lane: lane.String(), Events: uint64(events), Reason: why})
}

// addDropped counts dead letters of limits that were dropped. The caller must not hold mu.
func (s *Spool) addDropped(events int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.dropped += events
	s.config.Metrics.DeadLettersDropped.Add(float64(events))
}

// noteUncertain counts and logs events that are missing and may never have been answered.
// The caller must not hold mu.
func (s *Spool) noteUncertain(events int, name string) {
	if events == 0 {
		return
	}

	s.mu.Lock()
	s.uncertain += uint64(events)
	s.mu.Unlock()

	s.config.Metrics.SpoolUncertain.Add(float64(events))
	s.config.Logger.Warn("events of the newest commit are missing; "+
		"it is not certain that they were acknowledged: "+
		"the power most likely failed before they could be",
		"events", events, "generation", s.path(name))
}
