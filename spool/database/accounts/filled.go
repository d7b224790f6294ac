package accounts

import (
	"context"

	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/keyed"
)

// filled is the kind of the only value of Filled.
const filled keyed.Kind = "filled"

// Filled implements archive.Filled.
func (s *Store) Filled(ctx context.Context) (rowcode.Column, error) {
	end, found, err := keyed.Load[rowcode.Column](ctx, s.rows, keyed.Key{Kind: filled})
	if err == nil && !found {
		end = rowcode.FirstColumns // 0.1.0 wrote the rows
	}

	return end, err
}

// settled is the kind of the only value of Settled.
const settled keyed.Kind = "settled"

// Settled implements archive.Settled.
func (s *Store) Settled(ctx context.Context) (bool, error) {
	done, _, err := keyed.Load[bool](ctx, s.rows, keyed.Key{Kind: settled})
	return done, err
}

// SetSettled implements archive.Settled.
func (s *Store) SetSettled(ctx context.Context) error {
	return s.put(ctx, keyed.Key{Kind: settled}, true)
}

// SetFilled implements archive.Filled.
func (s *Store) SetFilled(ctx context.Context, end rowcode.Column) error {
	return s.put(ctx, keyed.Key{Kind: filled}, end)
}
