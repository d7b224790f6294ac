package archive

import (
	"context"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// RewritePage is Store.Rewrite of a store that can rewrite a page of records in one transaction, as long as they weigh
// little enough; else it fails with ErrHeavy.
func RewritePage(ctx context.Context, s Store, account string, after *query.Position, limit int,
	rewrite func(page []query.Position) (changed int, err error),
) (end *query.Position, changed int, err error) {
	var page []query.Position
	_, err = s.Scan(ctx, account, query.Query{After: after}, rowcode.PlaceColumns, func(row *wire.Row) (bool, error) {
		page = append(page, query.PositionOf(row))
		return len(page) < limit, nil
	})
	if err != nil || len(page) == 0 {
		return nil, 0, err
	}

	err = Apart(page, func(part []query.Position) error {
		n, err := rewrite(part)
		changed += n
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if len(page) == limit {
		end = &page[limit-1]
	}

	return end, changed, nil
}
