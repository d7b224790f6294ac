package transfer

import (
	"context"
	"errors"
	"maps"

	"promptspool/api/wire"
)

// Progress is how far a Copy is.
type Progress struct {
	// Stage is "copying", then "counting" what the source holds if an earlier run copied
	// some of it, then "checking".
	Stage string

	// Done is what this stage has done; while copying, only what this run has copied. It
	// may be read until told returns.
	Done Contents
}

// Copy copies everything in source into target, then proves that both hold the same.
// target must be empty, or hold what an unfinished Copy of the same source left there,
// which it resumes. told is called after each step. Copy returns what both hold. The
// error is wire.CodeConflict if target holds something else; then nothing was changed.
//
// Setup codes count for neither: every server without an owner makes its own.
func Copy(ctx context.Context, source, target Mover, told func(Progress)) (Contents, error) {
	switch _, unfinished, err := source.Copying(ctx); {
	case err != nil:
		return nil, err
	// The copy of half a database would be proved as well.
	case unfinished:
		return nil, wire.Errorf(wire.CodeConflict,
			"The source is itself the target of a copy that is not finished. Finish that first.")
	}

	// A place is kept in the target itself, with the items that it counts:
	// a copy that was killed goes on from there.
	place, unfinished, err := target.Copying(ctx)
	if err != nil {
		return nil, err
	}
	if !unfinished {
		if err := empty(ctx, target); err != nil {
			return nil, err
		}
	}

	brought, err := bring(ctx, source, target, place, told)
	if err != nil {
		return nil, err
	}
	if place != "" { // an earlier run brought the rest
		if brought, err = Count(ctx, source, func(c Contents) { told(Progress{"counting", c}) }); err != nil {
			return nil, err
		}
	}

	// What was written is read back: only that proves the copy.
	there, err := Count(ctx, target, func(c Contents) { told(Progress{"checking", c}) })
	if err != nil {
		return nil, err
	}
	if !maps.Equal(brought, there) {
		return nil, wire.Errorf(wire.CodeInternal,
			"The copy is not the same as its source, which holds %v; the copy holds %v. "+
				"Did a server write to either meanwhile? Empty the target, and copy again.", brought, there)
	}

	return there, target.Copied(ctx)
}

// errFound ends an Export at its first item.
var errFound = errors.New("there is something")

func empty(ctx context.Context, target Mover) error {
	// The first item is enough to know.
	err := export(ctx, target, "", func(Item, string) error { return errFound })
	if errors.Is(err, errFound) {
		return wire.Errorf(wire.CodeConflict,
			"The target is not empty. Give one that nobody has used yet.")
	}
	return err
}

// export calls each with the items behind place that Copy copies.
func export(ctx context.Context, from Mover, place string, each func(item Item, at string) error) error {
	return from.Export(ctx, place, func(item Item, at string) error {
		if item.Invite != nil && item.Invite.Of.Setup {
			return nil
		}
		return each(item, at)
	})
}

// bring copies everything behind place, and counts it.
func bring(ctx context.Context, source, target Mover, place string, told func(Progress)) (Contents, error) {
	done := Contents{}
	var batch []Item
	bytes := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		// The place of the batch's last item is stored with it, in one transaction.
		err := target.Import(ctx, batch, place)
		batch, bytes = batch[:0], 0
		told(Progress{"copying", done})
		return err
	}

	err := export(ctx, source, place, func(item Item, at string) error {
		if err := done.Add(item); err != nil {
			return err
		}
		// Before the item is added: the place of a batch is that of its last item.
		if weight := item.Bytes(); len(batch) == ImportItemsMax || bytes+weight > ImportBytesMax {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, bytes, place = append(batch, item), bytes+item.Bytes(), at
		return nil
	})
	if err == nil {
		err = flush()
	}
	return done, err
}

// Count returns what a database holds, by reading all of it.
func Count(ctx context.Context, db Mover, told func(Contents)) (Contents, error) {
	there := Contents{}
	read := 0
	err := export(ctx, db, "", func(item Item, _ string) error {
		if read++; read%ImportItemsMax == 0 {
			told(there)
		}
		return there.Add(item)
	})
	return there, err
}
