package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/generation"
)

// rawFiles is the evidence from the raw files of one generation, which was examined
// because Badger could not return an event of it. One is kept, so that a damaged
// generation is examined once and not for every event, and so that memory does not grow
// with the damage.
type rawFiles struct {
	generation *generationState
	end        uint64 // sequences below it were there when the files were examined
	evidence   generation.Evidence
}

// examine examines the raw files of a generation, and logs what the disk cannot read of
// them.
func (q *Queue) examine(name string) (generation.Evidence, error) {
	ev, err := generation.Examine(q.path(name))
	for _, u := range ev.Unreadable {
		q.config.Logger.Error("the disk cannot read a part of a file; what else is in it is kept",
			"file", u.Path, "bytes", u.Bytes)
	}

	return ev, err
}

// rawEvidence examines a generation that holds the sequences below end, unless that was
// done last.
//
// The generation may be written meanwhile: what is only half there does not verify, and
// is at end or above. The caller must hold readMu.
func (q *Queue) rawEvidence(g *generationState, end uint64) (*generation.Evidence, error) {
	if q.raw.generation != g || q.raw.end < end {
		ev, err := q.examine(g.name)
		if err != nil {
			return nil, err
		}

		q.raw = rawFiles{g, end, ev}
		q.config.Logger.Warn("events that badger no longer gives are looked for in its raw files",
			"generation", q.path(g.name))
	}
	return &q.raw.evidence, nil
}

// rescue takes the events from <= sequence < end, which Badger does not return, from the
// raw files of their generation. Those that are not whole there either are lost.
//
// why says what is wrong with them in the store. rescue reports full when enough was
// read.
func (r *reading) rescue(g *generationState, from, end uint64, why string) (full bool, err error) {
	if from >= end {
		return false, nil
	}

	raw, err := r.spool.rawEvidence(g, r.spool.lastSeq(g)+1)
	if err != nil {
		return false, fmt.Errorf("spool: event %d cannot be read (%s), nor the raw files of %s: %w",
			from, why, r.spool.path(g.name), err)
	}

	// The whole events and the lost ones between them, in order.
	for seq := from; seq < end; seq++ {
		whole := raw.NextWhole(seq, end)
		r.spool.lose(seq, whole, why+", and no whole copy of it is in the value log")
		seq = whole
		if seq == end {
			break
		}

		if !r.hasSpaceFor(raw.EventBytes(seq)) {
			return true, nil
		}

		e, err := raw.Read(seq)
		switch {
		case errors.Is(err, frame.ErrDamaged), errors.Is(err, io.EOF), disk.IsUnreadable(err):
			// Damaged since the files were examined.
			r.spool.lose(seq, seq+1, err.Error())
		case err != nil:
			return false, fmt.Errorf("spool: event %d: %w", seq, err)
		default:
			r.add(e)
		}
	}
	return false, nil
}

// restore rebuilds a sealed generation that was damaged since the spool was opened, as
// the next start would, so that its events need not wait for a restart.
//
// cause is why the generation could not be opened. restore returns it if its files are
// not damaged. Until the next start, lost events still count as waiting for their key:
// the table that names the key cannot be trusted. The caller must hold readMu.
func (q *Queue) restore(g *generationState, cause error) error {
	ev, err := q.examine(g.name)
	damaged := ev.Broken || errors.Is(cause, generation.ErrUnsealed) || errors.Is(cause, generation.ErrUnreadable)
	if err != nil || !damaged {
		return errors.Join(cause, err)
	}

	// Acknowledged events need not be copied. readMu keeps the frontier where it is.
	from, end := max(g.first, q.Frontier()), q.lastSeq(g)+1
	name, err := q.rebuild(g.name, ev, from, end)
	if err != nil {
		return errors.Join(cause, err)
	}

	// The evidence refers to files that have moved.
	if q.raw.generation == g {
		q.raw = rawFiles{}
	}
	q.mu.Lock()
	g.name = name
	q.mu.Unlock()

	for _, hole := range ev.Holes(from, end) {
		q.lose(hole.From, hole.End, "no whole copy of it is left in a damaged generation")
	}
	return nil
}

// Repair carries out the plans that Folder.Check makes for the spool in c.Dir, and closes
// it again.
//
// No process may have the spool open. Repair does what the next Open does, and one thing
// more: it rebuilds sealed generations with damage in their value log, which Open leaves
// alone and Read has to search. A rebuilt generation holds every frame that is whole. The
// old one is set aside if something is missing.
//
// Lost events are logged and counted in the returned Status. If Repair fails or is
// killed, run it again.
func Repair(ctx context.Context, c Config) (Status, error) {
	if err := unseal(ctx, c); err != nil {
		return Status{}, err
	}

	// Nothing is locked between the two: a sidecar that starts now does the same work.
	s, err := Open(c)
	if err != nil {
		return Status{}, err
	}
	st := s.Status()
	return st, s.Close()
}

// unseal removes the SEAL of the sealed generations that need to be rebuilt, so that Open
// does it.
func unseal(ctx context.Context, c Config) error {
	f, err := OpenFolder(c.Dir)
	if err != nil {
		return err
	}

	in := inspection{folder: f}
	if err := in.run(ctx); err != nil {
		return errors.Join(err, f.Close())
	}

	for _, g := range in.report.Generations {
		// Open trusts a SEAL, and does not read the value log then. Without one it
		// examines the raw files.
		if g.Plan == PlanRebuild {
			err = errors.Join(err, generation.Unseal(f.path(g.Name)))
		}
	}
	return errors.Join(err, f.Close())
}

// rebuild writes the whole events of a damaged generation, from <= sequence < end, to its
// next edition, which takes its place, and returns the name of that.
//
// The damaged folder goes to quarantine if something is missing from it. Otherwise it is
// removed, because it holds nothing more.
func (q *Queue) rebuild(name string, ev generation.Evidence, from, end uint64) (string, error) {
	first, edition, _ := generation.ParseName(name)
	rebuilt := generation.Name(first, edition+1)
	build := q.path(buildPrefix + rebuilt)
	// An earlier try may have failed half-way.
	if err := disk.RemoveAll(build); err != nil {
		return "", err
	}

	if err := q.guard.freeBallast(generation.Space(ev.Capacity()) + sealSpace); err != nil {
		return "", err
	}
	kept, err := ev.Rebuild(build, from, end, q.storeLog())
	if err != nil {
		return "", err
	}
	if err := errors.Join(disk.Rename(build, q.path(rebuilt)), disk.SyncDir(q.config.Dir)); err != nil {
		return "", err
	}

	// Only now may the damaged edition go. After a crash in between, Open finds both, and
	// uses the newer one.
	missing := end - from - uint64(kept)
	q.config.Logger.Warn("a generation was rebuilt from its raw files",
		"generation", q.path(name), "events", kept, "missing", missing)
	return rebuilt, q.setAsideOlder(name, missing > 0)
}

// setAsideOlder removes an edition of a generation that has a newer one, or moves it to
// quarantine if the newer one lacks events.
func (q *Queue) setAsideOlder(name string, missing bool) error {
	move := q.trash
	if missing {
		move = q.quarantine
	}

	// On Windows it may have to stay: Badger keeps files open that it could not read. The
	// next start finds both editions, as after a crash, and sets this one aside.
	err := move(name)
	if disk.IsInUse(err) {
		q.config.Logger.Warn("a damaged folder is in use; the next start sets it aside", "folder", q.path(name))
		return nil
	}
	return err
}

// quarantine moves a folder or file aside, for a person to look at. Nothing removes it.
func (q *Queue) quarantine(name string) error {
	if err := os.MkdirAll(q.path(quarantineName), 0o700); err != nil {
		return err
	}

	// Anything set aside earlier, under the same name, stays as it is.
	target := q.path(quarantineName, filepath.Base(name))
	for n := 2; disk.Exists(target); n++ {
		target = q.path(quarantineName, fmt.Sprintf("%s-%d", filepath.Base(name), n))
	}
	if err := disk.Rename(q.path(name), target); err != nil {
		return err
	}

	q.config.Logger.Error("what is damaged was set aside", "folder", target)
	return errors.Join(disk.SyncDir(q.path(quarantineName)), disk.SyncDir(filepath.Dir(q.path(name))))
}
