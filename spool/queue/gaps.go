package queue

import (
	"cmp"
	"slices"

	"promptspool/spool/queue/frame"
)

// lose counts and logs the sequences from <= s < end as lost, except those that were
// counted before or are below the frontier. The caller must not hold mu.
func (q *Queue) lose(from, end uint64, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()

	from = max(from, q.frontier)
	q.gaps = slices.DeleteFunc(q.gaps, func(g frame.Range) bool { return g.End <= q.frontier })

	// Reading finds the same gap again and again, and so does each start.
	lost := frame.Range{From: from, End: end}
	for _, g := range without(lost, q.gaps) {
		q.countGapLocked(g, why)
	}
	for _, g := range without(lost, q.recorded) {
		q.recordLocked(RecordedLoss{First: g.From, Last: g.End - 1, Events: g.End - g.From, Reason: why})
		q.recorded = append(q.recorded, g)
	}

	sortRanges(q.gaps)
	sortRanges(q.recorded)
}

// countGapLocked counts a range that overlaps no known gap.
func (q *Queue) countGapLocked(g frame.Range, why string) {
	n := g.End - g.From
	q.gaps = append(q.gaps, g)
	q.addGapsLocked(n)
	q.config.Logger.Error("events that were acknowledged to the app are lost",
		"events", n, "first", g.From, "last", g.End-1, "reason", why, "dir", q.config.Dir)
}

func sortRanges(ranges []frame.Range) {
	slices.SortFunc(ranges, func(a, b frame.Range) int { return cmp.Compare(a.From, b.From) })
}

// afterLostLocked returns the first sequence >= from that is not counted as lost.
func (q *Queue) afterLostLocked(from uint64) uint64 {
	// The gaps are in order, so one pass is enough even where they touch.
	for _, g := range q.gaps {
		if g.From <= from && from < g.End {
			from = g.End
		}
	}

	return from
}

// addGapsLocked adds to the count of lost events.
func (q *Queue) addGapsLocked(events uint64) {
	q.gapEvents += events
	q.config.Metrics.SpoolGaps.Add(float64(events))
}

// addLaneGaps adds events that a lane lost to the same count. The caller must not hold
// mu.
func (q *Queue) addLaneGaps(lane Lane, events int, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addGapsLocked(uint64(events))
	q.recordLocked(RecordedLoss{Lane: lane.String(), Events: uint64(events), Reason: why})
}

// addDropped counts dead letters of limits that were dropped. The caller must not hold mu.
func (q *Queue) addDropped(events int) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.dropped += events
	q.config.Metrics.DeadLettersDropped.Add(float64(events))
}

// noteUncertain counts and logs events that are missing and may never have been answered.
// The caller must not hold mu.
func (q *Queue) noteUncertain(events int, name string) {
	if events == 0 {
		return
	}

	q.mu.Lock()
	q.uncertain += uint64(events)
	q.mu.Unlock()

	q.config.Metrics.SpoolUncertain.Add(float64(events))
	q.config.Logger.Warn("events of the newest commit are missing; "+
		"it is not certain that they were acknowledged: "+
		"the power most likely failed before they could be",
		"events", events, "generation", q.path(name))
}
