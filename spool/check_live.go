package spool

import (
	"context"
	"slices"

	"promptspool/spool/frame"
)

// Check reads and verifies every frame that waits when it begins, while the spool runs.
//
// It covers generations and lanes. Damage that it finds is counted and logged, as by
// Read. The report includes what was found lost since the spool was opened. Check takes
// turns with calls that read, acknowledge, and move events to lanes. An error means that
// something cannot be read at all.
func (s *Spool) Check(ctx context.Context) (Report, error) {
	r := s.outline()

	// The events come in order, and so do the generations: at only moves forward.
	at := 0
	for e, err := range s.Waiting(ctx) {
		if err != nil {
			return Report{}, err
		}

		for at < len(r.Generations) && r.Generations[at].Last < e.Seq {
			at++
		}
		if at == len(r.Generations) {
			break // appended since the outline
		}

		g := &r.Generations[at]
		g.Events++
		g.Bytes += int64(len(e.Data))
		r.Events++
		r.Bytes += int64(len(e.Data))
	}

	// After the reading, which finds gaps.
	for _, gap := range s.waitingGaps() {
		r.lose(gap.From, gap.End, "no whole copy is left; the sidecar's log says why")
		for i := range r.Generations {
			g := &r.Generations[i]
			if from, end := max(gap.From, g.First), min(gap.End, g.Last+1); from < end {
				g.Damaged += end - from
			}
		}
	}

	for _, lane := range []Lane{LaneHeld, LaneDead} {
		l := checkLane(lane, s.Lane(lane))
		l.lose(s.lanes.Lost(lane))
		r.Lanes = append(r.Lanes, l)
	}

	var err error
	if r.Quarantine, err = quarantined(s.config.Dir); err != nil {
		return Report{}, err
	}
	losses, err := readLosses(s.config.Dir)
	if err != nil {
		return Report{}, err
	}
	r.addLosses(losses)

	return r, ctx.Err()
}

// outline returns a report of the generations, with nothing read yet.
func (s *Spool) outline() Report {
	s.mu.Lock()
	defer s.mu.Unlock()

	r := Report{Frontier: s.frontier, Next: s.next}
	for _, g := range s.generations {
		// One that waits for its seal takes no more events either.
		state := StateSealed
		if g == s.writing {
			state = StateWritten
		}

		r.Generations = append(r.Generations, GenerationReport{
			Name:  g.name,
			State: state,
			First: g.first,
			Last:  g.last,
			Acked: min(max(g.first, s.frontier), g.last+1) - g.first,
			Plan:  PlanKeep,
		})
	}
	return r
}

// waitingGaps returns the gaps at the frontier and above.
func (s *Spool) waitingGaps() []frame.Range {
	s.mu.Lock()
	defer s.mu.Unlock()

	// A copy, because lose changes the gaps in place.
	gaps := slices.Clone(s.gaps)
	for i := range gaps {
		gaps[i].From = max(gaps[i].From, s.frontier)
	}
	return slices.DeleteFunc(gaps, func(g frame.Range) bool { return g.From >= g.End })
}
