package lane

import (
	"errors"
	"fmt"
	"slices"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
)

// Release deletes events from a lane, segment by segment.
//
// When it returns nil, they are gone for good, even after a crash. On an error some may
// be gone. Releasing a sequence that is not in the lane succeeds.
func (l *Lanes) Release(lane Lane, seqs []uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return err
	}

	wanted := make(map[uint64]bool, len(seqs))
	for _, seq := range seqs {
		wanted[seq] = true
	}

	// A clone, because each release changes the slice. Segments may overlap, so one
	// sequence is looked for in several.
	for _, g := range slices.Clone(l.segments) {
		inside := func(s uint64) bool { return g.first <= s && s <= g.last }
		if g.lane != lane || !slices.ContainsFunc(seqs, inside) {
			continue
		}
		if err := l.releaseFromLocked(g, wanted); err != nil {
			return fmt.Errorf("spool: cannot remove events from %s: %w", g.path, err)
		}
	}
	return nil
}

// releaseFromLocked deletes the wanted events from one segment, by replacing or removing
// its file.
func (l *Lanes) releaseFromLocked(g segment, wanted map[uint64]bool) error {
	if missing, err := l.forgetMissingLocked(g); missing || err != nil {
		return err
	}

	file, refs, err := openSegment(g.path)
	if err != nil {
		return err
	}
	defer file.Close()

	var rest []event
	var gone []frame.EventKey
	for _, ref := range refs {
		if wanted[ref.key.Seq] {
			gone = append(gone, ref.key)
			continue
		}

		// Copied as it is, without a look inside: a damaged event must not keep the events
		// beside it from going.
		e, err := rawEvent(file, ref)
		if err != nil {
			return err
		}
		rest = append(rest, e)
	}
	if len(gone) == 0 {
		return nil
	}

	// The count is lowered before the events go: see count.
	if err := l.saveCountLessLocked(g.lane, len(gone)); err != nil {
		return err
	}

	// Either all of the segment goes, or a new one with the rest takes its name. A crash
	// leaves the old file, whose events are then released once more.
	left := g
	if len(rest) == 0 {
		err = errors.Join(disk.Remove(g.path), disk.SyncDir(l.dir))
	} else {
		left, err = writeSegment(g.path, g.kind, rest)
	}
	if err != nil {
		return l.diskError(err)
	}

	l.dropLocked(g.path)
	for _, k := range gone {
		l.usage[g.lane].Add(k.Key, -1, 0)
	}
	if len(rest) > 0 {
		l.addLocked(left, nil)
	}
	return nil
}
