package archive

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// neighbourBudget is how long the search for neighbours looks into prompts and responses, or
// reads a list that is not sorted by time: a page waits for it, and is complete without them.
const neighbourBudget = time.Second

// Neighbours returns the ids of the records before and behind one in the list of a search;
// "" is none. at is the record's list time. What is not found in time is left out.
func (a *Archive) Neighbours(
	ctx context.Context, id wire.Identity, s wire.Search, requestID string, at time.Time,
) (before, behind string, err error) {
	if err := checkAccount(id); err != nil {
		return "", "", err
	}
	q, err := query.Compile(s)
	if err != nil {
		return "", "", err
	}

	began := time.Now()
	defer a.observeQuery(began)
	n := neighbours{
		store:    a.config.Store,
		account:  id.Account,
		search:   s,
		order:    q.Order,
		of:       query.Position{At: at, RequestID: requestID},
		deadline: began.Add(neighbourBudget),
	}
	if err := n.find(ctx, a.config.Now()); err != nil {
		return "", "", err
	}

	return n.before.id(), n.behind.id(), nil
}

// neighbours finds the records beside one. Stores read lists newest first only, and keep
// them in the order of time only.
type neighbours struct {
	store    Store
	account  string
	search   wire.Search
	order    query.Order
	of       query.Position
	deadline time.Time // for looking into bodies, and for a list that is not sorted by time

	before, behind beside
}

// beside is the nearest record on one side, among those visited.
type beside struct {
	found bool
	query.Position
}

func (b *beside) id() string {
	if !b.found {
		return ""
	}

	return b.RequestID
}

// find looks on both sides.
func (n *neighbours) find(ctx context.Context, now time.Time) error {
	if n.order.By != "" && n.order.By != "list_time" {
		return n.findSorted(ctx)
	}
	if n.order.By != "" {
		n.of.Value = n.order.PositionOf(&wire.Row{ListTime: n.of.At}).Value
	}

	// Those of the same time come first, because they are beside it in any order. Lists are
	// sorted by microseconds.
	from, to := microsecond(n.of.At)
	if whole, err := n.visit(ctx, nil, n.sameTime(n.of.At)...); err != nil || !whole {
		return err
	}

	newer, older := &n.before, &n.behind
	if n.order.Ascending {
		newer, older = older, newer
	}
	if !older.found {
		// Ascending, the last of several of one time is the neighbour.
		enough := func(row *wire.Row) bool {
			return !n.order.Ascending || row.ListTime.Before(older.At.Truncate(time.Microsecond))
		}
		if _, err := n.visit(ctx, enough, n.listed("before", from)); err != nil {
			return err
		}
	}
	if !newer.found {
		return n.findNewer(ctx, newer, to, now)
	}

	return nil
}

// newerStretchMax bounds the stretches of time of findNewer, except for the last one.
const newerStretchMax = 365 * 24 * time.Hour

// findNewer looks in longer and longer stretches of time after from: a scan begins with
// the newest row, so an unbounded one would read everything since.
func (n *neighbours) findNewer(ctx context.Context, newer *beside, from, now time.Time) error {
	for stretch := time.Second; !newer.found; stretch *= 8 {
		within := []wire.Filter{n.listed("after", from)}

		// Nobody knows how far ahead of this clock the last rows are.
		// Of one microsecond all come in the same stretch, because any of them may be nearest.
		_, to := microsecond(n.of.At.Add(stretch))
		last := stretch > newerStretchMax || !to.Before(now)
		if !last {
			within = append(within, n.listed("lte", to))
		}
		if whole, err := n.visit(ctx, nil, within...); err != nil || !whole || last {
			return err
		}
		from = to
	}

	return nil
}

// findSorted looks on both sides at once: in a list that is sorted by something else than
// time, any row may be beside the record.
func (n *neighbours) findSorted(ctx context.Context) error {
	// What is sorted is the row's value, which may be rounded.
	id, _ := json.Marshal(n.of.RequestID)
	q, err := query.CompileMatch(&wire.Filter{Filters: []wire.Filter{
		n.listed("is", n.of.At), {Field: "request_id", Operator: "is", Value: id},
	}}, "")
	if err != nil {
		return err
	}
	found := false
	if _, err := n.store.Scan(ctx, n.account, q, n.columns(), func(row *wire.Row) (bool, error) {
		n.of, found = n.position(row), true
		return false, nil
	}); err != nil || !found {
		return err
	}

	// The list may be long, whatever its filter looks into.
	visiting, cancel := context.WithDeadline(ctx, n.deadline)
	defer cancel()
	near, err := n.findNear(visiting)
	if err == nil && !near {
		_, err = n.visit(visiting, nil)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		n.before = beside{} // there may be nearer ones
		if !near {
			n.behind = beside{}
		}
		return nil
	}

	return err
}

// findNear looks on both sides by the first rows of some lists, which stores find fast if every
// row of a time is wanted. near is false for other lists.
func (n *neighbours) findNear(ctx context.Context) (near bool, err error) {
	q, err := query.CompileMatch(n.search.FilterGroup, n.search.Q)
	if err != nil || !q.Spanned() || !n.order.ByNumber() || !n.of.Value.Known {
		return false, err
	}

	// Of equal values the newest come first, in both directions. So beside the record are those of
	// its own value, or the newest of the value behind and the oldest of the value before.
	own := n.valued(n.of.Value)
	if _, err := n.visit(ctx, nil, append(n.sameTime(n.of.At), own)...); err != nil {
		return true, err
	}
	first, last := microsecond(n.of.At)
	if !n.behind.found {
		newest := func(*wire.Row) bool { return true }
		if _, err := n.visit(ctx, newest, n.listed("before", first), own); err != nil {
			return true, err
		}
	}
	if !n.behind.found {
		if n.behind, err = n.first(ctx, q, n.order, n.order.Beyond(n.of.Value)); err != nil {
			return true, err
		}
	}

	if !n.before.found {
		if err := n.findOldest(ctx, n.of.Value, n.listed("after", last)); err != nil {
			return true, err
		}
	}
	if n.before.found {
		return true, nil
	}
	turned := query.Order{By: n.order.By, Ascending: !n.order.Ascending}
	before, err := n.first(ctx, q, turned, turned.Beyond(n.of.Value))
	if err != nil || !before.found || !before.Value.Known {
		return true, err
	}

	return true, n.findOldest(ctx, before.Value)
}

// first returns the first row of a list behind a position; nil is its beginning.
func (n *neighbours) first(
	ctx context.Context, q query.Query, o query.Order, after *query.Position,
) (b beside, err error) {
	q.Order, q.After, q.Bare = o, after, true
	page, err := n.store.Search(ctx, n.account, q)
	if err != nil || len(page.Rows) == 0 {
		return b, err
	}

	return beside{true, o.PositionOf(&page.Rows[0])}, nil
}

// findOldest visits the oldest row that has a value and satisfies the conditions, with those of
// its time.
func (n *neighbours) findOldest(ctx context.Context, value query.SortValue, within ...wire.Filter) error {
	within = append(within, n.valued(value))
	if n.search.FilterGroup != nil {
		within = append(within, *n.search.FilterGroup)
	}
	q, err := query.CompileMatch(&wire.Filter{Filters: within}, n.search.Q)
	if err != nil {
		return err
	}
	oldest, err := n.first(ctx, q, query.Order{By: "list_time", Ascending: true}, nil)
	if err != nil || !oldest.found {
		return err
	}
	_, err = n.visit(ctx, nil, append(n.sameTime(oldest.At), n.valued(value))...)

	return err
}

// valued returns a condition on what the list is sorted by.
func (n *neighbours) valued(v query.SortValue) wire.Filter {
	both, _ := json.Marshal([]float64{v.Number, v.Number})

	return wire.Filter{Field: n.order.By, Operator: "between", Value: both}
}

// columns are what a position is made of.
func (n *neighbours) columns() rowcode.Columns {
	return rowcode.PlaceColumns | rowcode.ColumnsOf(n.order.Column())
}

// position returns the position of a row that is lent.
func (n *neighbours) position(row *wire.Row) query.Position {
	p := n.order.PositionOf(row)
	p.Value.Text = strings.Clone(p.Value.Text)

	return p
}

// listed returns a condition on the list time.
func (n *neighbours) listed(operator string, at time.Time) wire.Filter {
	value, _ := json.Marshal(at)

	return wire.Filter{Field: "list_time", Operator: operator, Value: value}
}

// sameTime returns conditions on the list time, for those that sorted lists take for equal.
func (n *neighbours) sameTime(at time.Time) []wire.Filter {
	from, to := microsecond(at)

	return []wire.Filter{n.listed("gte", from), n.listed("lte", to)}
}

// microsecond returns the first and the last moment of the microsecond of a time.
func microsecond(at time.Time) (from, to time.Time) {
	from = at.Truncate(time.Microsecond)

	return from, from.Add(time.Microsecond - 1)
}

// visit looks at the rows of the list that satisfy the conditions, newest first, until it
// has seen enough. If it could not see all of them in time, it is not whole, and forgets
// what it found: there may be nearer ones.
func (n *neighbours) visit(
	ctx context.Context, enough func(row *wire.Row) bool, within ...wire.Filter,
) (whole bool, err error) {
	if n.search.FilterGroup != nil {
		within = append(within, *n.search.FilterGroup)
	}
	q, err := query.CompileMatch(&wire.Filter{Filters: within}, n.search.Q)
	if err != nil {
		return false, err
	}
	if q.NeedsBody() || q.NeedsWhole() {
		q.Budget = max(time.Until(n.deadline), time.Millisecond)
	}

	before, behind := n.before, n.behind
	stopped, err := n.store.Scan(ctx, n.account, q, n.columns(), func(row *wire.Row) (bool, error) {
		n.take(row)
		return enough == nil || !enough(row), nil
	})
	if stopped != nil {
		n.before, n.behind = before, behind
	}

	return stopped == nil, err
}

// take keeps a row that is nearer than those before.
func (n *neighbours) take(row *wire.Row) {
	p := n.order.PositionOf(row)
	side, sign := &n.behind, 1
	if n.order.Compare(p, n.of) < 0 {
		side, sign = &n.before, -1
	}
	if p.RequestID == n.of.RequestID || side.found && sign*n.order.Compare(p, side.Position) >= 0 {
		return
	}

	*side = beside{true, n.position(row)}
}
