package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// statisticsBudget is how long statistics and suggestions look into prompts and responses.
const statisticsBudget = 20 * time.Second

// Analyze sums up the records that a search with the same filter finds. It waits until the end; see Counting.
func (a *Archive) Analyze(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.Analytics, error) {
	sums := query.NewAnalytics(q)
	progress, err := a.sum(ctx, id, q, query.AnalyticsColumns, sums)
	if err != nil {
		return wire.Analytics{}, err
	}

	w := sums.Answer()
	w.Progress = progress

	return w, nil
}

// TemplateStatistics sums up records by template version. A filter on prompt_name leaves one template.
func (a *Archive) TemplateStatistics(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.TemplateStatistics, error) {
	sums := query.NewTemplateVersions(q)
	progress, err := a.sum(ctx, id, q, query.TemplateVersionsColumns, sums)
	if err != nil {
		return wire.TemplateStatistics{}, err
	}

	w := sums.Answer()
	w.Progress = progress

	return w, nil
}

// adder counts rows. One that is also Sums gets summaries where it can.
type adder interface{ Add(row *wire.Row) error }

// sum gives the rows that a query finds to an adder. Only looking into bodies has a budget: where no filter but time is set,
// the numbers are those of every record, at any load.
func (a *Archive) sum(ctx context.Context, id wire.Identity, s wire.StatisticsQuery, want rowcode.Columns, to adder) (wire.Progress, error) {
	if err := checkAccount(id); err != nil {
		return wire.Progress{}, err
	}
	q, err := query.CompileMatch(s.FilterGroup, s.Q)
	if err != nil {
		return wire.Progress{}, err
	}

	defer a.timed(time.Now())
	if sums, ok := to.(query.Sums); ok && q.Spanned() {
		return wire.Progress{}, a.config.Store.Sum(ctx, id.Account, q, want, sums)
	}

	if q.NeedsBody() || q.NeedsWhole() {
		q.Budget = statisticsBudget
	}
	stopped, err := a.config.Store.Scan(ctx, id.Account, q, want, func(row *wire.Row) (bool, error) {
		return true, to.Add(row)
	})
	if err != nil || stopped == nil {
		return wire.Progress{}, err
	}

	return wire.Progress{Incomplete: true, Since: stopped.At}, nil
}

// Suggest returns values that a field has, of the newest records first.
func (a *Archive) Suggest(ctx context.Context, id wire.Identity, s wire.SuggestQuery) (wire.Suggestions, error) {
	if err := checkAccount(id); err != nil {
		return wire.Suggestions{}, err
	}
	g, err := query.NewSuggestion(s)
	if err != nil {
		return wire.Suggestions{}, err
	}
	where, err := a.ofTemplate(ctx, id.Account, s)
	if err != nil {
		return wire.Suggestions{}, err
	}
	q, err := query.CompileMatch(where, "")
	if err != nil {
		return wire.Suggestions{}, err
	}
	q.Budget = statisticsBudget
	spent := patience{began: time.Now(), budget: s.Budget}
	defer a.timed(spent.began)
	if g.Column() == rowcode.ColumnBody {
		spent.each, spent.budget = 1, cmp.Or(spent.budget, statisticsBudget)
		complete, err := a.suggestOfBodies(ctx, id, q, g, &spent)
		return wire.Suggestions{Success: true, Values: g.Values, Complete: complete}, err
	}

	w := wire.Suggestions{Success: true, Complete: true}
	stopped, err := a.config.Store.Scan(ctx, id.Account, q, rowcode.ColumnsOf(g.Column(), rowcode.ColumnID), func(row *wire.Row) (bool, error) {
		more := g.Add(&query.Subject{Row: row}) && !spent.isOver()
		w.Complete = w.Complete && more
		return more, nil
	})
	w.Values = g.Values
	w.Complete = w.Complete && stopped == nil
	return w, err
}

// suggestPage is how many positions are read ahead of the bodies that values are taken from.
const suggestPage = 64

// suggestOfBodies takes values from the bodies of what q finds, and reports whether it has looked at all of them. It asks
// the store for each body while no scan of it is under way: a store that waits to be alone would wait for the scan, and
// the body for the store.
func (a *Archive) suggestOfBodies(ctx context.Context, id wire.Identity, q query.Query, g *query.Suggestion, spent *patience) (complete bool, err error) {
	for {
		page, stopped, err := a.positions(ctx, id, q, suggestPage)
		if err != nil {
			return false, err
		}
		for _, p := range page {
			_, body, err := a.config.Store.Record(ctx, id.Account, p.RequestID)
			if wire.IsCode(err, wire.CodeNotFound) {
				continue // deleted since
			}
			if err != nil {
				return false, err
			}

			s := query.Subject{Row: &wire.Row{RequestID: p.RequestID}, Body: func() ([]byte, error) { return body, nil }}
			if !g.Add(&s) || spent.isOver() {
				return false, nil
			}
		}
		if len(page) < suggestPage {
			return stopped == nil, nil
		}
		q.After = &page[len(page)-1]
	}
}

// patience bounds how long rows are looked at.
type patience struct {
	began  time.Time
	budget time.Duration // 0: without end
	rows   int
	each   int // rows after which to look at the clock: 1 where each row reads a body; 0: many
}

// isOver reports whether the budget is spent.
func (p *patience) isOver() bool {
	p.rows++

	return p.budget > 0 && p.rows%cmp.Or(p.each, 256) == 0 && time.Since(p.began) > p.budget
}

// ofTemplate narrows the filter of suggestions to the template that they name by its id. Calls may be linked to it by either.
func (a *Archive) ofTemplate(ctx context.Context, account string, s wire.SuggestQuery) (*wire.Filter, error) {
	if s.TemplateID == "" {
		return s.FilterGroup, nil
	}
	names := []string{s.TemplateID}
	if a.config.Versions != nil {
		name, _, err := a.config.Versions.VersionAt(ctx, account, s.TemplateID, wire.Selector{}, a.config.Now())
		if err == nil {
			names = append(names, name)
		} else if !wire.IsCode(err, wire.CodeNotFound) {
			return nil, err
		}
	}
	value, _ := json.Marshal(names)
	f := wire.Filter{Filters: []wire.Filter{{Field: "prompt_name", Operator: "in", Value: value}}}
	if s.FilterGroup != nil {
		f.Filters = append(f.Filters, *s.FilterGroup)
	}
	return &f, nil
}

// Export gives fn every record that matches, whole, newest first, with a cursor that goes on behind it, until fn returns an error,
// which it returns. Its memory is bounded by one record. What is written meanwhile may be in it or not; what was deleted
// before fn would get it is not.
func (a *Archive) Export(ctx context.Context, id wire.Identity, e wire.ExportQuery, fn func(wire.Exported) error) error {
	if err := checkAccount(id); err != nil {
		return err
	}
	q, err := query.Compile(wire.Search{FilterGroup: e.FilterGroup, Q: e.Q, Cursor: e.Cursor, PerPage: exportPage})
	if err != nil {
		return err
	}
	for q.Budget = 0; ; {
		page, _, err := a.positions(ctx, id, q, exportPage)
		if err != nil {
			return err
		}
		for i := range page {
			record, err := a.Request(ctx, id, page[i].RequestID)
			if wire.IsCode(err, wire.CodeNotFound) {
				continue // deleted since
			}
			if err == nil {
				err = fn(wire.Exported{Record: record, Cursor: page[i].Cursor()})
			}
			if err != nil {
				return err
			}
		}
		if len(page) < exportPage {
			return nil
		}
		q.After = &page[len(page)-1]
	}
}

// exportPage is how many positions an export reads ahead of its records. A reader that is slow holds up no snapshot.
const exportPage = 1000

// positions are the next rows that q finds, so many at most. stopped is where the store's budget was spent, or nil.
func (a *Archive) positions(ctx context.Context, id wire.Identity, q query.Query, most int) (page []query.Position, stopped *query.Position, err error) {
	stopped, err = a.config.Store.Scan(ctx, id.Account, q, rowcode.ColumnsOf(rowcode.ColumnID, rowcode.ColumnTime), func(row *wire.Row) (bool, error) {
		page = append(page, query.PositionOf(row))
		return len(page) < most, nil
	})
	return page, stopped, err
}

// Delete deletes one record, or all with a metadata value, for good; see wire.Deletion. A record that there is not is
// kept out all the same, and is no error.
func (a *Archive) Delete(ctx context.Context, id wire.Identity, d wire.Deletion) (wire.Deleted, error) {
	if err := checkAccount(id); err != nil {
		return wire.Deleted{}, err
	}
	var err error
	switch {
	case d.RequestID != "" && d.Key != "":
		return wire.Deleted{}, wire.Invalid(wire.FieldError{Field: "request_id", Reason: "cannot be combined with metadata_key; send one of them"})
	case d.RequestID == "" && d.Key == "":
		return wire.Deleted{}, wire.Invalid(wire.FieldError{Field: "request_id", Reason: "is missing; send it, or metadata_key and metadata_value"})
	case d.RequestID != "":
		if d.RequestID, err = wire.ParseID(d.RequestID); err != nil {
			return wire.Deleted{}, wire.Invalid(wire.FieldError{Field: "request_id", Reason: err.Error()})
		}
	case d.Before.IsZero() || d.Before.After(a.config.Now()):
		d.Before = a.config.Now().UTC()
	}
	deleted, err := a.config.Store.Delete(ctx, id.Account, d)
	if err != nil {
		return wire.Deleted{}, err
	}
	deleted.Success = true
	return deleted, nil
}

// Rewrite gives change every request of the account, newest first, in steps, behind cursor ("" for the first). It returns how many
// it changed, and calls progress after each step with the cursor that goes on behind it; an error of progress ends it.
func (a *Archive) Rewrite(ctx context.Context, id wire.Identity, cursor string, change Change, progress func(seen, changed int, cursor string) error) error {
	if err := checkAccount(id); err != nil {
		return err
	}
	var after *query.Position
	if cursor != "" {
		p, ok := query.ParseCursor(cursor)
		if !ok {
			return wire.Invalid(wire.FieldError{Field: "cursor", Reason: "is not one; send that of an earlier answer as it was"})
		}
		after = &p
	}
	seen, changed := 0, 0
	counted := func(accepted time.Time, r *Request, body func() ([]byte, error)) (bool, error) {
		seen++
		return change(accepted, r, body)
	}
	for {
		end, n, err := a.config.Store.Rewrite(ctx, id.Account, after, rewriteStep, counted)
		if err != nil {
			return err
		}
		changed += n
		next := ""
		if end != nil {
			next = end.Cursor()
		}
		if err := progress(seen, changed, next); err != nil || end == nil {
			return err
		}
		after = end
	}
}

// rewriteStep is how many records one transaction rewrites.
const rewriteStep = 200
