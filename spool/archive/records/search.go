package records

import (
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Search finds records of the identity's account, newest first.
func (svc *Service) Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error) {
	if err := checkAccount(id); err != nil {
		return wire.SearchPage{}, err
	}
	q, err := query.Compile(s)
	if err != nil {
		return wire.SearchPage{}, err
	}

	return svc.search(ctx, id, q)
}

func (svc *Service) search(ctx context.Context, id wire.Identity, q query.Query) (wire.SearchPage, error) {
	defer svc.observeQuery(time.Now())
	page, err := svc.config.Store.Search(ctx, id.Account, q)
	if err != nil {
		return wire.SearchPage{}, err
	}

	return q.Answer(page), nil
}

// observeQuery records how long a question to the store took.
func (svc *Service) observeQuery(start time.Time) {
	svc.config.Metrics.ArchiveQuerySeconds.Observe(time.Since(start).Seconds())
}

// positions returns up to limit next rows that q finds. stopped is where the store's
// budget was spent, or nil.
func (svc *Service) positions(
	ctx context.Context, id wire.Identity, q query.Query, limit int,
) (page []query.Position, stopped *query.Position, err error) {
	collect := func(row *wire.Row) (bool, error) {
		page = append(page, query.PositionOf(row))
		return len(page) < limit, nil
	}
	stopped, err = svc.config.Store.Scan(ctx, id.Account, q, rowcode.PlaceColumns, collect)

	return page, stopped, err
}
