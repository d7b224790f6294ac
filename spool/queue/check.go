package queue

import (
	"context"
	"fmt"
	"slices"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/generation"
)

// Check reads and verifies every frame of the folder, and proves that no sequence is
// missing.
//
// It covers generations and lanes, finds what Open would find, and changes nothing. Like
// Open, it keeps the places of one generation's frames in memory.
//
// An error means that the folder cannot be read, or that ctx ended. Damage is not an
// error; it is in the report.
func (f *Folder) Check(ctx context.Context) (Report, error) {
	in := inspection{folder: f}
	if err := in.run(ctx); err != nil {
		return Report{}, err
	}

	for _, lane := range []Lane{LaneHeld, LaneDead} {
		// A file of the lane that is gone shows only in the lane's own count.
		r := checkLane(lane, f.Lane(lane))
		r.lose(f.lanes.AtLeast(lane) - r.Events - r.Damaged)
		in.report.Lanes = append(in.report.Lanes, r)
	}
	return in.report, ctx.Err()
}

// Status returns what the folder holds. Unlike the Status of a running spool, it reads
// everything.
func (f *Folder) Status(ctx context.Context) (Status, error) {
	r, err := f.Check(ctx)
	st := Status{
		Events:      r.Events,
		Bytes:       r.Bytes,
		DiskBytes:   disk.Used(f.dir, ""),
		Frontier:    r.Frontier,
		Next:        r.Next,
		Gaps:        r.LostEvents(),
		Uncertain:   uint64(r.Uncertain),
		Generations: len(r.Generations),
	}
	for _, l := range r.Lanes {
		switch l.Lane {
		case LaneHeld.String():
			st.Held = l.Events + l.Damaged
		case LaneDead.String():
			st.Dead = l.Events + l.Damaged
		}
	}

	// Only the first event is needed, for its time.
	for e, err := range f.Waiting() {
		if err != nil {
			return st, err
		}
		st.Oldest = e.At
		break
	}
	return st, err
}

// inspection goes through the generations as Open does (prove.go), but reads only the raw
// files: the SEAL shows whether the keys of a generation are unchanged, the value log
// whether its events are whole.
type inspection struct {
	folder *Folder
	// visit is called with every generation that has waiting events, from <= sequence <
	// end. It may be nil.
	visit  func(ev generation.Evidence, from, end uint64) error
	report Report

	proved uint64 // everything below is at the server, whole, or in report.Lost
}

func (in *inspection) run(ctx context.Context) error {
	f, r := in.folder, &in.report
	places, err := generation.In(f.dir)
	if err != nil {
		return err
	}
	r.Frontier, r.Next = bounds(f.cursor, places)
	in.proved = r.Frontier

	for _, at := range places {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := in.generation(at); err != nil {
			return err
		}
	}
	r.lose(in.proved, r.Next, "the generation that held it is gone")

	// Older editions that a crash left: Open keeps them only if the newer one lacks
	// events.
	for i, at := range places {
		for _, name := range at.Older {
			old := GenerationReport{
				Name:  name,
				State: StateDamaged,
				First: at.First,
				Last:  at.First - 1,
				Plan:  PlanRemove,
			}
			if r.Generations[i].Damaged > 0 {
				old.Plan = PlanQuarantine
			}
			r.Generations = append(r.Generations, old)
		}
	}

	return r.addAside(f.dir)
}

// generation inspects one generation.
func (in *inspection) generation(at generation.Place) error {
	r := &in.report
	name, first, follower := at.Name, at.First, at.Follower
	g := GenerationReport{Name: name, First: first, Plan: PlanRemove}
	end := max(r.Next, first)
	if follower > 0 {
		end = follower
	}

	// Nothing in it waits, so Open removes it without looking inside.
	r.lose(in.proved, first, "the generation that held it is gone")
	if follower > 0 && end <= r.Frontier {
		g.State, g.Last, g.Acked = StateSealed, end-1, end-first
		in.add(g)
		return nil
	}

	ev, err := generation.Examine(in.folder.path(name))
	if err != nil {
		return err
	}
	for _, u := range ev.Unreadable {
		g.Unreadable += u.Bytes
	}
	sealed, err := generation.IsSealed(in.folder.path(name))
	if err != nil {
		return err
	}

	// Only the raw files show where the newest generation ends.
	if follower == 0 {
		r.Uncertain += ev.DropUncertain(r.Next)
		end = max(end, ev.End(first))
		if all := ev.Sequences(); sealed && len(all) > 0 {
			// An edition that was rebuilt may begin later.
			end = max(end, all[len(all)-1]+1)
		}
	}

	// The conditions are those under which Open lets Badger see the generation.
	from := max(first, r.Frontier)
	switch {
	case sealed && (!ev.Broken || from >= end):
		g.State = StateSealed
	case !sealed && ev.Agrees(first) && generation.CheckManifest(in.folder.path(name)) == nil:
		g.State = StateOpen
	default:
		g.State = StateDamaged
	}
	g.Last, g.Acked = end-1, min(from, end)-first

	holes := ev.Holes(from, end)
	for _, hole := range holes {
		g.Damaged += hole.End - hole.From
		r.lose(hole.From, hole.End, whyLost(name, g))
	}
	for _, seq := range ev.Sequences() {
		if from <= seq && seq < end {
			g.Events++
			g.Bytes += ev.EventBytes(seq)
		}
	}

	g.Plan = planFor(g, ev.Len())
	in.add(g)
	if in.visit != nil && g.Events > 0 {
		return in.visit(ev, from, end)
	}
	return nil
}

// whyLost returns the reason why events of a generation are lost.
func whyLost(name string, g GenerationReport) string {
	if g.Unreadable == 0 {
		return "no whole copy of it is left in " + name
	}
	return fmt.Sprintf("no whole copy of it is left in %s; the disk cannot read %d bytes of that",
		name, g.Unreadable)
}

func (in *inspection) add(g GenerationReport) {
	r := &in.report
	r.Generations = append(r.Generations, g)
	r.Events += g.Events
	r.Bytes += g.Bytes
	r.Next = max(r.Next, g.Last+1)
	in.proved = max(in.proved, g.Last+1)
}

// planFor returns what Open does with a generation that has this many whole events,
// acknowledged ones included.
func planFor(g GenerationReport, whole int) Plan {
	switch {
	// The same conditions as those of a proof: the plan is what the next start will do.
	case g.Last+1 == g.First && g.State != StateDamaged:
		return PlanRemove
	case g.State == StateSealed:
		return PlanKeep
	case g.State == StateOpen:
		return PlanReplay
	case whole > 0:
		return PlanRebuild
	case g.Damaged > 0:
		return PlanQuarantine
	}

	return PlanRemove
}

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
			// It was appended since the outline.
			break
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

	if err := r.addAside(q.config.Dir); err != nil {
		return Report{}, err
	}
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
