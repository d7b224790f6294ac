package records

import (
	"context"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Kept returns how much is kept of the identity's account.
func (svc *Service) Kept(ctx context.Context, id wire.Identity) (wire.Kept, error) {
	if err := checkAccount(id); err != nil {
		return wire.Kept{}, err
	}
	has, err := svc.config.Store.Counts(ctx, id.Account)

	return wire.Kept{Requests: has.Records, Bytes: has.Bytes}, err
}

// Orphans lists the records of the identity's account whose request has not arrived,
// by request id.
func (svc *Service) Orphans(
	ctx context.Context, id wire.Identity, q wire.OrphanQuery,
) (wire.OrphanPage, error) {
	page := wire.OrphanPage{Success: true, Items: []wire.Orphan{}}
	if err := checkAccount(id); err != nil {
		return page, err
	}

	after := ""
	if q.Cursor != "" {
		// The cursor is the last request id of the page before.
		var err error
		if after, err = wire.ParseID(q.Cursor); err != nil {
			return page, errCursor("next_cursor of an earlier answer")
		}
	}

	has, err := svc.config.Store.Counts(ctx, id.Account)
	if err != nil {
		return page, err
	}
	page.Total, page.Events = has.Orphans.Requests, has.Orphans.Events // of all pages

	states, next, err := svc.config.Store.OffList(ctx, id.Account, archive.Orphaned, after, q.PerPage)
	for i := range states {
		if row, ok := states[i].OrphanRow(); ok {
			page.Items = append(page.Items, row)
		}
	}
	if next != "" {
		page.NextCursor = &next
	}

	return page, err
}
