package accounts

import (
	"context"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// views are those of one owner, sorted by name: every page shows them, so they are read together.
const views keyed.Kind = "views" // []wire.View

// ownerKey returns the key of the project's views, or of those of the person that id is.
func ownerKey(id wire.Identity, own bool) keyed.Key {
	owner := "project"
	if own {
		owner = id.KeyID
	}

	return keyed.Key{Kind: views, Account: id.Account, Name: owner}
}

// Views implements wire.Views.
func (s *Store) Views(ctx context.Context, id wire.Identity) ([]wire.View, error) {
	all := []wire.View{}
	kept, err := keyed.LoadAll[[]wire.View](ctx, s.rows, ownerKey(id, false), ownerKey(id, true))
	for i, owned := range kept {
		for _, v := range wire.OrZero(owned) {
			v.Own = i == 1
			all = append(all, v)
		}
	}

	return all, err
}

// PutView implements wire.Views.
func (s *Store) PutView(ctx context.Context, id wire.Identity, v wire.View) error {
	return s.changeViews(ctx, id, v, true, func(all []wire.View, at int, exists bool) ([]wire.View, error) {
		switch {
		case exists:
			all[at] = v
			return all, nil
		case len(all) >= wire.ViewsMax:
			return nil, wire.Errorf(wire.CodeConflict, "There are %d views already. Delete one first.", wire.ViewsMax)
		}
		return slices.Insert(all, at, v), nil
	})
}

// RemoveView implements wire.Views.
func (s *Store) RemoveView(ctx context.Context, id wire.Identity, v wire.View) error {
	return s.changeViews(ctx, id, v, false, func(all []wire.View, at int, exists bool) ([]wire.View, error) {
		if !exists {
			return nil, wire.Errorf(wire.CodeNotFound, "There is no view %.200q.", v.Name)
		}
		return slices.Delete(all, at, at+1), nil
	})
}

// changeViews changes the views of an owner, of which one is at a place, or would be there.
func (s *Store) changeViews(
	ctx context.Context, id wire.Identity, v wire.View, again bool,
	change func(all []wire.View, at int, exists bool) ([]wire.View, error),
) error {
	key := ownerKey(id, v.Own)
	return s.rows.Change(ctx, id.Account, again, func(tx *keyed.Tx) error {
		all, _, err := keyed.Load[[]wire.View](ctx, tx, key)
		if err != nil {
			return err
		}
		at, exists := slices.BinarySearchFunc(all, v.Name, func(v wire.View, name string) int {
			return strings.Compare(v.Name, name)
		})
		all, err = change(all, at, exists)
		if err != nil {
			return err
		}

		return tx.Put(key, all)
	})
}
