package transfer

import (
	"context"
	"errors"
	"maps"
	"slices"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed"
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
	switch unfinished, err := Unfinished(ctx, source); {
	case err != nil:
		return nil, err
	// The copy of half a database would be proved as well.
	case unfinished:
		return nil, wire.Errorf(wire.CodeConflict,
			"The source is itself the target of a copy that is not finished. Finish that first.")
	}

	// How far it has come is kept in the target itself, with what has come: a copy that was
	// killed continues from there.
	at, resumed, err := keyed.Load[place](ctx, target.Small(), copyingKey)
	if err != nil {
		return nil, err
	}
	if !resumed {
		if err := empty(ctx, target); err != nil {
			return nil, err
		}
	}

	brought := Contents{}
	if err := bring(ctx, source, target, at, brought, told); err != nil {
		return nil, err
	}
	if resumed { // an earlier run brought the rest
		if brought, err = Count(ctx, source, func(c Contents) { told(Progress{"counting", c}) }); err != nil {
			return nil, err
		}
	}

	// Everything written is read back: only that proves the copy.
	there, err := Count(ctx, target, func(c Contents) { told(Progress{"checking", c}) })
	if err != nil {
		return nil, err
	}
	if !maps.Equal(brought, there) {
		return nil, wire.Errorf(wire.CodeInternal,
			"The copy is not the same as its source, which holds %v; the copy holds %v. "+
				"Did a server write to either meanwhile? Empty the target, and copy again.", brought, there)
	}

	return there, target.Small().Write(ctx, keyed.Entry{Key: copyingKey})
}

// copyingKey exists in a database while a copy into it is not finished.
var copyingKey = keyed.Key{Kind: "copying"}

// place is how far a copy has come in its source.
type place struct {
	// The last entry that was copied. Bytes, because names need not be text.
	Kind    keyed.Kind `json:"kind"`
	Account []byte     `json:"account"`
	Name    []byte     `json:"name"`

	Record string `json:"record"` // the place of the last item of records, which follow
}

func (p place) mark() (keyed.Entry, error) { return keyed.EntryOf(copyingKey, p) }

// Unfinished reports whether a copy into a database was begun and not finished. A server must
// not use it meanwhile.
func Unfinished(ctx context.Context, db Mover) (unfinished bool, err error) {
	_, unfinished, err = keyed.Load[place](ctx, db.Small(), copyingKey)
	return unfinished, err
}

// errFound ends a walk at its first item.
var errFound = errors.New("there is something")

func empty(ctx context.Context, target Mover) error {
	// The first is enough to know.
	err := walk(ctx, target, place{}, func([]keyed.Entry) error { return errFound },
		func(Item, string) error { return errFound })
	if errors.Is(err, errFound) {
		return wire.Errorf(wire.CodeConflict,
			"The target is not empty. Give one that has not been used yet.")
	}
	return err
}

// walkMax bounds how many entries are read and written at a time: each may be a template of
// some size.
const walkMax = 100

// walk calls small with the entries after a place, some at a time, and then each with the
// items of records.
func walk(
	ctx context.Context, db Mover, at place, small func([]keyed.Entry) error, each func(Item, string) error,
) error {
	after := keyed.Key{Kind: at.Kind, Account: string(at.Account), Name: string(at.Name)}
	for {
		page, err := db.Small().Walk(ctx, after, walkMax)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}

		after = page[len(page)-1].Key
		page = slices.DeleteFunc(page, func(e keyed.Entry) bool { return e.Key == copyingKey || accounts.IsSetup(e) })
		if len(page) == 0 {
			continue
		}
		if err := small(page); err != nil {
			return err
		}
	}

	return db.Export(ctx, at.Record, each)
}

// bring copies everything after a place, and counts it in done.
func bring(
	ctx context.Context, source, target Mover, at place, done Contents, told func(Progress),
) error {
	small := func(page []keyed.Entry) error {
		for _, e := range page {
			done.AddEntry(e)
		}
		last := page[len(page)-1]
		at.Kind, at.Account, at.Name = last.Kind, []byte(last.Account), []byte(last.Name)

		mark, err := at.mark()
		if err == nil {
			err = target.Small().Write(ctx, append(page, mark)...)
		}
		told(Progress{"copying", done})
		return err
	}

	var batch []Item
	bytes := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		mark, err := at.mark()
		if err == nil {
			err = target.Import(ctx, batch, mark)
		}
		batch, bytes = batch[:0], 0
		told(Progress{"copying", done})
		return err
	}
	each := func(item Item, here string) error {
		if err := done.Add(item); err != nil {
			return err
		}
		// Before the item is added: the place of a batch is that of its last item.
		if weight := item.Bytes(); len(batch) == ImportItemsMax || bytes+weight > ImportBytesMax {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, bytes, at.Record = append(batch, item), bytes+item.Bytes(), here
		return nil
	}

	if err := walk(ctx, source, at, small, each); err != nil {
		return err
	}
	return flush()
}

// Count returns what a database holds, by reading all of it.
func Count(ctx context.Context, db Mover, told func(Contents)) (Contents, error) {
	there := Contents{}
	read := 0
	small := func(page []keyed.Entry) error {
		for _, e := range page {
			there.AddEntry(e)
		}
		return nil
	}
	err := walk(ctx, db, place{}, small, func(item Item, _ string) error {
		if read++; read%ImportItemsMax == 0 {
			told(there)
		}
		return there.Add(item)
	})
	return there, err
}
