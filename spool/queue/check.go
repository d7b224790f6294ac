package queue

import (
	"context"
	"fmt"

	"promptspool/spool/disk"
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
		Events:    r.Events,
		Bytes:     r.Bytes,
		DiskBytes: disk.Used(f.dir, ""),
		Frontier:  r.Frontier,
		Next:      r.Next,
		Gaps:      r.LostEvents(),
		Uncertain: uint64(r.Uncertain),
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

	return r.addAside(f.dir)
}

// generation inspects one generation.
func (in *inspection) generation(at generation.Place) error {
	r := &in.report
	end := max(r.Next, at.First)
	if at.Follower > 0 {
		end = at.Follower
	}

	// Where nothing in it waits, Open removes it without looking inside.
	r.lose(in.proved, at.First, "the generation that held it is gone")
	if at.Follower > 0 && end <= r.Frontier {
		return nil
	}

	ev, err := generation.Examine(in.folder.path(at.Name))
	if err != nil {
		return err
	}

	// Only the raw files show where the newest generation ends.
	if at.Follower == 0 {
		r.Uncertain += ev.DropUncertain(r.Next)
		end = max(end, ev.End(at.First))

		sealed, err := generation.IsSealed(in.folder.path(at.Name))
		if err != nil {
			return err
		}
		if all := ev.Sequences(); sealed && len(all) > 0 {
			// An edition that was rebuilt may begin later.
			end = max(end, all[len(all)-1]+1)
		}
	}

	from := max(at.First, r.Frontier)
	for _, hole := range ev.Holes(from, end) {
		r.lose(hole.From, hole.End, whyLost(at.Name, ev.Unreadable))
	}
	for _, seq := range ev.Sequences() {
		if from <= seq && seq < end {
			r.Events++
			r.Bytes += ev.EventBytes(seq)
		}
	}
	r.Next, in.proved = max(r.Next, end), max(in.proved, end)

	if in.visit == nil {
		return nil
	}
	return in.visit(ev, from, end)
}

// whyLost returns the reason why events of a generation are lost.
func whyLost(name string, unreadable []generation.Unreadable) string {
	why := "no whole copy of it is left in " + name
	bytes := int64(0)
	for _, u := range unreadable {
		bytes += u.Bytes
	}

	if bytes > 0 {
		why += fmt.Sprintf("; the disk cannot read %d bytes of that", bytes)
	}
	return why
}

// Check reads and verifies every frame that waits when it begins, while the spool runs.
//
// It covers generations and lanes. Damage that it finds is counted and logged, as by
// Read. The report includes what was found lost since the spool was opened. Check takes
// turns with calls that read, acknowledge, and move events to lanes. An error means that
// something cannot be read at all.
func (q *Queue) Check(ctx context.Context) (Report, error) {
	r := Report{Frontier: q.Frontier(), Next: q.Next()}
	for e, err := range q.Waiting(ctx) {
		if err != nil {
			return Report{}, err
		}
		if e.Seq >= r.Next {
			// It was appended since.
			break
		}
		r.Events++
		r.Bytes += int64(len(e.Data))
	}

	// After the reading, which finds gaps.
	q.mu.Lock()
	for _, gap := range q.gaps {
		r.lose(max(gap.From, q.frontier), gap.End, "no whole copy is left; the sidecar's log says why")
	}
	q.mu.Unlock()

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
