// Package keyed is how a server's database keeps what is small: JSON values under keys.
//
// Templates, people, sidecars and the audit log are decided about once, in other packages;
// a database only keeps their values. It promises:
//
//   - A write is durable when its method returns, as a whole or not at all.
//   - No two changes of an account interleave, at whichever server they run. Everything
//     that a change has read, including absence, still holds when it is committed.
//   - A value is returned byte for byte as it was written.
//
// A key that belongs to a record would begin its name with the week in the record's id, so
// that a database can drop it with that week. None does so far.
package keyed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Kind is a kind of value, as a word. It has no NUL.
type Kind string

// Key is where a value is kept.
type Key struct {
	Kind    Kind
	Account string // its id; "" for what belongs to the server
	Name    string // any bytes; keys of a kind and an account are in their order
}

// Compare orders keys by kind, account and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Account, other.Account), cmp.Compare(k.Name, other.Name))
}

// Entry is a key and its value.
type Entry struct {
	Key
	Value json.RawMessage // nil in a write: the key is deleted
}

// Decode decodes the value into v. The error names the key.
func (e Entry) Decode(v any) error {
	if err := json.Unmarshal(e.Value, v); err != nil {
		return Damaged(e.Key, err)
	}
	return nil
}

// Damaged is the error for a value that cannot be read. The log, not the caller, gets the key.
func Damaged(key Key, cause error) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeInternal,
		Affects: wire.AffectsAccount,
		Message: "A value in the server's database is damaged; the server's log says which. " +
			"Check the database's disk, and restore a backup.",
		Cause: fmt.Errorf("%s of project %q, key %q: %w", key.Kind, key.Account, key.Name, cause),
	}
}

// Reader reads values. Each method takes one round trip and each value is of one moment;
// those of two calls may be of two. The returned values belong to the caller.
type Reader interface {
	// Get returns the values of keys, in their order; nil where there is none.
	Get(ctx context.Context, keys ...Key) ([]json.RawMessage, error)

	// Scan returns up to limit entries of the kind and the account of a key, in the order
	// of their names, from the key on. It leaves out the first skip of them.
	Scan(ctx context.Context, from Key, skip, limit int) ([]Entry, error)
}

// Store keeps values. It is safe for concurrent use. Errors are wire errors.
type Store interface {
	Reader

	// Change calls fn, and makes what fn wrote durable, unless fn returns an error. Changes
	// of one account run one after the other, so fn must be quick, and must not call the
	// Store. fn may be called several times; with again also if an earlier call was perhaps
	// committed.
	Change(ctx context.Context, account string, again bool, fn func(*Tx) error) error

	// Write makes entries durable, whatever was there before. It does not wait for changes,
	// and may be carried out twice. No key occurs twice.
	Write(ctx context.Context, entries ...Entry) error

	// Walk returns up to limit entries after a key, of all kinds and accounts. Their order is
	// always the same, with the entries of a kind together. The zero key is before all others.
	Walk(ctx context.Context, after Key, limit int) ([]Entry, error)
}

// Tx is a change in progress. Reading does not show what it wrote.
type Tx struct {
	Reader
	writes map[Key]json.RawMessage
}

// NewTx returns a change that reads from r.
func NewTx(r Reader) *Tx { return &Tx{r, make(map[Key]json.RawMessage)} }

// Put writes the JSON of a value.
func (tx *Tx) Put(key Key, value any) error {
	e, err := EntryOf(key, value)
	tx.writes[key] = e.Value
	return err
}

// Delete deletes a key, which need not exist.
func (tx *Tx) Delete(key Key) { tx.writes[key] = nil }

// Entries returns what was written, in the order of the keys.
func (tx *Tx) Entries() []Entry {
	var entries []Entry
	for _, key := range slices.SortedFunc(maps.Keys(tx.writes), Key.Compare) {
		entries = append(entries, Entry{key, tx.writes[key]})
	}
	return entries
}

// EntryOf returns an entry with the JSON of a value.
func EntryOf(key Key, value any) (Entry, error) {
	text, err := jsonscan.Marshal(value)
	return Entry{key, text}, err
}

// Load decodes the value of one key. found reports whether there is one.
func Load[T any](ctx context.Context, r Reader, key Key) (v T, found bool, err error) {
	values, err := LoadAll[T](ctx, r, key)
	if err != nil || values[0] == nil {
		return v, false, err
	}
	return *values[0], true, nil
}

// LoadAll decodes the values of keys, in one round trip; nil where there is none.
func LoadAll[T any](ctx context.Context, r Reader, keys ...Key) ([]*T, error) {
	raw, err := r.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}

	values := make([]*T, len(keys))
	for i, text := range raw {
		if text != nil {
			values[i] = new(T)
			if err := (Entry{keys[i], text}).Decode(values[i]); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// pageMax is how many values are read at a time where all of a kind are wanted. It bounds what
// is held of them besides what the caller keeps.
const pageMax = 200

// Each calls fn with the values of a kind and an account, from a key on, in order. It decodes
// them, and ends with fn's error.
func Each[T any](ctx context.Context, r Reader, from Key, fn func(Key, *T) error) error {
	for {
		page, err := r.Scan(ctx, from, 0, pageMax)
		if err != nil {
			return err
		}
		if err := eachDecoded(page, fn); err != nil || len(page) < pageMax {
			return err
		}
		// The first name after it.
		from.Name = page[pageMax-1].Name + "\x00"
	}
}

// EachOfAll is Each for the values of a kind of all accounts, in any order.
func EachOfAll[T any](ctx context.Context, s Store, kind Kind, fn func(Key, *T) error) error {
	for after := (Key{Kind: kind}); ; {
		page, err := s.Walk(ctx, after, pageMax)
		if err != nil {
			return err
		}
		// Entries of a kind are together, so others follow when one of another kind comes.
		of := page
		if end := slices.IndexFunc(page, func(e Entry) bool { return e.Kind != kind }); end >= 0 {
			of = page[:end]
		}
		if err := eachDecoded(of, fn); err != nil || len(of) < pageMax {
			return err
		}
		after = page[pageMax-1].Key
	}
}

func eachDecoded[T any](page []Entry, fn func(Key, *T) error) error {
	for _, e := range page {
		v := new(T)
		err := e.Decode(v)
		if err == nil {
			err = fn(e.Key, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Item is a decoded entry.
type Item[T any] struct {
	Key Key
	Of  *T
}

// List returns the values that Each finds.
func List[T any](ctx context.Context, r Reader, from Key) (items []Item[T], err error) {
	err = Each(ctx, r, from, func(key Key, v *T) error {
		items = append(items, Item[T]{key, v})
		return nil
	})
	return items, err
}
