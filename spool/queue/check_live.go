package queue

import (
	"context"
	"slices"

	"promptspool/spool/queue/frame"
)

// Check reads and verifies every frame that waits when it begins, while the spool runs.
//
// It covers generations and lanes. Damage that it finds is counted and logged, as by
// Read. The report includes what was found lost since the spool was opened. Check takes
// turns with calls that read, acknowledge, and move events to lanes. An error means that
// something cannot be read at all.
func (q *Queue) Check(ctx context.Context) (Report, error) {
	r := q.outline()

	// The events come in order, and so do the generations: at only moves forward.
	at := 0
	for e, err := range q.Waiting(ctx) {
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
	for _, gap := range q.waitingGaps() {
		r.lose(gap.From, gap.End, "no whole copy is left; the sidecar's log says why")
		for i := range r.Generations {
			g := &r.Generations[i]
			if from, end := max(gap.From, g.First), min(gap.End, g.Last+1); from < end {
				g.Damaged += end - from
			}
		}
	}

	for _, lane := range []Lane{LaneHeld, LaneDead} {
		l := checkLane(lane, q.Lane(lane))
		l.lose(q.lanes.Lost(lane))
		r.Lanes = append(r.Lanes, l)
	}

	var err error
	if r.Quarantine, err = quarantined(q.config.Dir); err != nil {
		return Report{}, err
	}
	losses, err := readLosses(q.config.Dir)
	if err != nil {
		return Report{}, err
	}
	r.addLosses(losses)

	return r, ctx.Err()
}

// outline returns a report of the generations, with nothing read yet.
func (q *Queue) outline() Report {
	q.mu.Lock()
	defer q.mu.Unlock()

	r := Report{Frontier: q.frontier, Next: q.next}
	for _, g := range q.generations {
		// One that waits for its seal takes no more events either.
		state := StateSealed
		if g == q.writing {
			state = StateWritten
		}

		r.Generations = append(r.Generations, GenerationReport{
			Name:  g.name,
			State: state,
			First: g.first,
			Last:  g.last,
			Acked: min(max(g.first, q.frontier), g.last+1) - g.first,
			Plan:  PlanKeep,
		})
	}
	return r
}

// waitingGaps returns the gaps at the frontier and above.
func (q *Queue) waitingGaps() []frame.Range {
	q.mu.Lock()
	defer q.mu.Unlock()

	// A copy, because lose changes the gaps in place.
	gaps := slices.Clone(q.gaps)
	for i := range gaps {
		gaps[i].From = max(gaps[i].From, q.frontier)
	}
	return slices.DeleteFunc(gaps, func(g frame.Range) bool { return g.From >= g.End })
}
