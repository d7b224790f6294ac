package records

import (
	"context"
	"slices"
	"time"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/archive/rowcode"
)

// How long a search for sessions, traces or users looks at calls, and how many of these it names.
const (
	rollupBudget   = 2 * time.Second
	rollupNamesMax = 20_000
)

// Rollups finds sessions, traces or users of the identity's account.
func (svc *Service) Rollups(ctx context.Context, id wire.Identity, s wire.RollupSearch) (wire.RollupPage, error) {
	page, err := svc.rollups(ctx, id, s)
	if s.Of != "traces" || len(page.Items) > namedTracesMax {
		return page, err
	}
	for i := range page.Items {
		item := &page.Items[i]
		item.Name, err = svc.traceName(ctx, id.Account, item.ID)
		if err != nil {
			break
		}
	}

	return page, err
}

// rollups is Rollups without the names of traces.
func (svc *Service) rollups(ctx context.Context, id wire.Identity, s wire.RollupSearch) (wire.RollupPage, error) {
	answer := wire.RollupPage{Success: true, Items: []wire.Rollup{}, Complete: true}
	defer svc.observeQuery(time.Now())

	// A cursor of an incomplete page is a place among the calls.
	_, amongCalls := query.ParseCursor(s.Cursor)
	calls := wire.Search{FilterGroup: s.FilterGroup}
	if amongCalls {
		calls.Cursor, s.Cursor = s.Cursor, ""
	}
	q, err := rollup.Compile(s)
	if err != nil {
		return answer, err
	}
	if calls.FilterGroup != nil || amongCalls {
		answer.NextCursor, err = svc.nameRollups(ctx, id, calls, &q)
		if err != nil {
			return answer, err
		}
		answer.Complete = answer.NextCursor == nil && !amongCalls
	}

	page, err := svc.config.Store.Rollups(ctx, id.Account, q)
	if err != nil {
		return answer, err
	}
	for i := range page.Entries {
		answer.Items = append(answer.Items, page.Entries[i].Answer())
	}
	answer.Total = page.Total
	if page.More && answer.Complete {
		answer.NextCursor = rowcode.Optional(q.Cursor(&page.Entries[len(page.Entries)-1]))
	}
	answer.Complete = answer.Complete && !svc.isLeft(id.Account)

	return answer, nil
}

// namedTracesMax is how many traces a page may have that tells their names: each takes a read.
const namedTracesMax = 100

// traceName returns the name of a trace's first span, of its root if that is among the first. Ids
// begin with the time at which a span began.
func (svc *Service) traceName(ctx context.Context, account, id string) (name string, err error) {
	trace, _ := archive.ParseTrace(id)
	first, _, err := svc.config.Store.States(ctx, account, archive.Part{Trace: trace}, "", 3)
	for i := range first {
		span, ok := first[i].TraceSpan()
		if ok && span.ParentID == nil {
			return span.Name, nil
		}
		if name == "" {
			name = span.Name
		}
	}

	return name, err
}

// nameRollups narrows q to the names that the calls have which a search finds. If these are too many
// for the time, or follow a cursor, it takes the first of them for one page and returns a cursor for
// the rest.
func (svc *Service) nameRollups(
	ctx context.Context, id wire.Identity, calls wire.Search, q *rollup.Query,
) (next *string, err error) {
	found, err := query.Compile(calls)
	if err != nil {
		return nil, err
	}

	names, known := []string{}, make(map[string]bool)
	end := time.Now().Add(rollupBudget)
	add := func(row *wire.Row) (whole bool) {
		if name := rollupName(q.Kind, row); name != "" && !known[name] {
			known[name] = true
			names = append(names, name)
		}
		return len(names) <= rollupNamesMax && time.Now().Before(end)
	}

	// One page, and the call before the first name beyond it.
	var at *query.Position
	part, whole, full := found.After != nil, true, false
	stopped, err := svc.config.Store.Scan(ctx, id.Account, found, rowcode.PlaceColumns|rollupColumns[q.Kind],
		func(row *wire.Row) (bool, error) {
			whole = add(row)
			full = len(names) > q.Limit
			if !full {
				p := query.PositionOf(row)
				at = &p
			}
			return whole && !full, nil
		})
	if stopped != nil {
		at, whole = stopped, false
	}
	whole = whole && !(part && full)

	// The rest without places, which take longer to read than all else.
	if err == nil && whole && full {
		found.After = at
		stopped, err = svc.config.Store.Scan(ctx, id.Account, found, rollupColumns[q.Kind],
			func(row *wire.Row) (bool, error) {
				whole = add(row)
				return whole, nil
			})
		whole = whole && stopped == nil
	}
	if err != nil {
		return nil, err
	}

	if !whole {
		names = names[:min(len(names), q.Limit)]
		next = rowcode.Optional(at.Cursor())
	}
	if q.Names != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return name != q.Names[0] })
	}
	q.Names = names

	return next, nil
}

// rollupColumns are the columns of a row that have the name of its roll-up.
var rollupColumns = [rollup.Kinds]rowcode.Columns{
	rollup.Session: 1 << rowcode.ColumnMetadata,
	rollup.Trace:   1 << rowcode.ColumnTrace,
	rollup.User:    1 << rowcode.ColumnMetadata,
}

// rollupName returns the name of a call's roll-up, "" if it has none.
func rollupName(kind rollup.Kind, row *wire.Row) string {
	key := dialect.SessionKey
	switch kind {
	case rollup.Trace:
		return row.TraceID
	case rollup.User:
		key = dialect.UserKey
	}
	for _, m := range row.Metadata {
		if m.Key == key && !rowcode.IsReference(m.Value) {
			return rollup.Name(m.Value)
		}
	}

	return ""
}

// Session returns what the records of a session add up to.
func (svc *Service) Session(ctx context.Context, id wire.Identity, session string) (wire.RollupFound, error) {
	found, err := svc.rollup(ctx, id.Account, rollup.Session, session)
	if err == nil && found == nil {
		err = wire.Errorf(wire.CodeNotFound, "This project has no session %.100q. If a sidecar has just accepted "+
			"its calls, they may still be on their way.", session)
	}
	if err != nil {
		return wire.RollupFound{}, err
	}

	scores, err := svc.ownScores(ctx, id.Account, wire.ScoreTarget{SessionID: session})

	return wire.RollupFound{Success: true, Rollup: found.Answer(), OwnScores: scores}, err
}

// ownScores returns the scores that a session or a trace itself has, by name.
func (svc *Service) ownScores(ctx context.Context, account string, of wire.ScoreTarget) ([]wire.Score, error) {
	state, _, err := svc.config.Store.Record(ctx, account, of.RecordID())
	if wire.IsCode(err, wire.CodeNotFound) {
		// The state is that of no scores.
		err = nil
	}

	return state.View(ctx, nil).Scores, err
}

// rollup returns one roll-up, nil if it does not exist.
func (svc *Service) rollup(ctx context.Context, account string, kind rollup.Kind, name string) (*rollup.Entry, error) {
	q := rollup.Query{Kind: kind, Names: []string{name}, Sort: rollup.FactOf("last_seen"), Limit: 1}
	page, err := svc.config.Store.Rollups(ctx, account, q)
	if err != nil || len(page.Entries) == 0 {
		return nil, err
	}
	return &page.Entries[0], nil
}
