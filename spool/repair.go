package spool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Repair carries out the plans that Folder.Check makes for the spool in c.Dir, and closes it again. No process may have it
// open. It is what the next Open does, and one thing more: a sealed generation with damage in its value log, which Open leaves
// as it is, and of which Read searches the raw files, is rebuilt from every frame that is whole, and set aside if something
// is missing. What is lost is counted in the Status that it returns, and logged. When it fails or is killed, run it again.
func Repair(ctx context.Context, c Config) (Status, error) {
	if err := unseal(ctx, c); err != nil {
		return Status{}, err
	}
	s, err := Open(c)
	if err != nil {
		return Status{}, err
	}
	st := s.Status()
	return st, s.Close()
}

// unseal takes the SEAL from the sealed generations that are to be rebuilt, so that Open rebuilds them.
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
		seal := filepath.Join(f.path(g.Name), sealName)
		if g.Plan == PlanRebuild && exists(seal) {
			err = errors.Join(err, os.Remove(seal), syncDir(f.path(g.Name)))
		}
	}
	return errors.Join(err, f.Close())
}
