package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"promptspool/spool/disk"
	"promptspool/spool/queue/generation"
)

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
