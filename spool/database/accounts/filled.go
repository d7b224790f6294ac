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

// SetFilled implements archive.Filled.
func (s *Store) SetFilled(ctx context.Context, end rowcode.Column) error {
	return s.put(ctx, keyed.Key{Kind: filled}, end)
}
