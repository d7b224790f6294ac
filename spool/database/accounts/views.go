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
func (s *Store) PutView(ctx context.Context, id wire.Identity, was string, v wire.View) error {
	renames := was != v.Name
	return s.changeViews(ctx, id, v.Own, !renames, func(all []wire.View) ([]wire.View, error) {
		at, exists := findView(all, was)
		switch {
		case exists:
			all = slices.Delete(all, at, at+1)
		case renames:
			return nil, errNoView(was)
		}

		at, taken := findView(all, v.Name)
		switch {
		case taken:
			return nil, errTaken()
		case len(all) >= wire.ViewsMax:
			return nil, wire.Errorf(wire.CodeConflict, "There are %d views already. Delete one first.", wire.ViewsMax)
		}

		return slices.Insert(all, at, v), nil
	})
}

// RemoveView implements wire.Views.
func (s *Store) RemoveView(ctx context.Context, id wire.Identity, v wire.View) error {
	return s.changeViews(ctx, id, v.Own, false, func(all []wire.View) ([]wire.View, error) {
		at, exists := findView(all, v.Name)
		if !exists {
			return nil, errNoView(v.Name)
		}
		return slices.Delete(all, at, at+1), nil
	})
}

// changeViews changes the views of an owner.
func (s *Store) changeViews(
	ctx context.Context, id wire.Identity, own, again bool, change func([]wire.View) ([]wire.View, error),
) error {
	key := ownerKey(id, own)
	return s.rows.Change(ctx, id.Account, again, func(tx *keyed.Tx) error {
		all, _, err := keyed.Load[[]wire.View](ctx, tx, key)
		if err == nil {
			all, err = change(all)
		}
		if err != nil {
			return err
		}
		return tx.Put(key, all)
	})
}

func errNoView(name string) *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no view %.200q.", name)
}

func errTaken() *wire.Error {
	e := wire.Invalid(wire.FieldError{Field: "name", Reason: "is that of another view: choose another one"})
	e.Code = wire.CodeConflict
	return e
}

// findView returns the place of a view among sorted ones, or where it would be.
func findView(all []wire.View, name string) (at int, found bool) {
	return slices.BinarySearchFunc(all, name, func(v wire.View, name string) int {
		return strings.Compare(v.Name, name)
	})
}
