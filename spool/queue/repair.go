package queue

import (
	"context"
	"errors"

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
