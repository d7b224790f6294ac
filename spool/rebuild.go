package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"promptspool/spool/disk"
	"promptspool/spool/generation"
)

// rebuild writes the whole events of a damaged generation, from <= sequence < end, to its
// next edition, which takes its place, and returns the name of that.
//
// The damaged folder goes to quarantine if something is missing from it. Otherwise it is
// removed, because it holds nothing more.
func (s *Spool) rebuild(name string, ev generation.Evidence, from, end uint64) (string, error) {
	first, edition, _ := generation.ParseName(name)
	rebuilt := generation.Name(first, edition+1)
	build := s.path(buildPrefix + rebuilt)
	// An earlier try may have failed half-way.
	if err := disk.RemoveAll(build); err != nil {
		return "", err
	}

	if err := s.guard.freeBallast(generation.Room(ev.Capacity()) + sealRoom); err != nil {
		return "", err
	}
	kept, err := ev.Rebuild(build, from, end, s.storeLog())
	if err != nil {
		return "", err
	}
	if err := errors.Join(disk.Rename(build, s.path(rebuilt)), disk.SyncDir(s.config.Dir)); err != nil {
		return "", err
	}

	// Only now may the damaged edition go. After a crash in between, Open finds both, and
	// uses the newer one.
	missing := end - from - uint64(kept)
	s.config.Logger.Warn("a generation was rebuilt from its raw files",
		"generation", s.path(name), "events", kept, "missing", missing)
	return rebuilt, s.setAsideOlder(name, missing > 0)
}

// setAsideOlder removes an edition of a generation that has a newer one, or moves it to
// quarantine if the newer one lacks events.
func (s *Spool) setAsideOlder(name string, missing bool) error {
	move := s.trash
	if missing {
		move = s.quarantine
	}

	// On Windows it may have to stay: Badger keeps files open that it could not read. The
	// next start finds both editions, as after a crash, and sets this one aside.
	err := move(name)
	if disk.IsInUse(err) {
		s.config.Logger.Warn("a damaged folder is in use; the next start sets it aside", "folder", s.path(name))
		return nil
	}
	return err
}

// quarantine moves a folder or file aside, for a person to look at. Nothing removes it.
func (s *Spool) quarantine(name string) error {
	if err := os.MkdirAll(s.path(quarantineName), 0o700); err != nil {
		return err
	}

	// Anything set aside earlier, under the same name, stays as it is.
	target := s.path(quarantineName, filepath.Base(name))
	for n := 2; disk.Exists(target); n++ {
		target = s.path(quarantineName, fmt.Sprintf("%s-%d", filepath.Base(name), n))
	}
	if err := disk.Rename(s.path(name), target); err != nil {
		return err
	}

	s.config.Logger.Error("what is damaged was set aside", "folder", target)
	return errors.Join(disk.SyncDir(s.path(quarantineName)), disk.SyncDir(filepath.Dir(s.path(name))))
}
