package records

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// statisticsBudget is how long statistics and suggestions look into prompts and
// responses.
const statisticsBudget = 20 * time.Second

// Analyze sums up the records that a search with the same filter finds.
func (svc *Service) Analyze(
	ctx context.Context, id wire.Identity, q wire.StatisticsQuery,
) (wire.Analytics, error) {
	if err := svc.define(ctx, id, &q); err != nil {
		return wire.Analytics{}, err
	}
	want := query.AnalyticsColumns
	if q.Brief {
		want = query.BriefColumns
	}
	sums := query.NewAnalytics(q)
	progress, err := svc.sum(ctx, id, q, want, sums)
	if err != nil {
		return wire.Analytics{}, err
	}

	w := sums.Answer()
	w.Progress = progress
	if s := wire.SumOf(w.Scores, q.ScoreAgreement); s != nil {
		w.ScoreAgreement = new(wire.ScoreAgreement)
		*w.ScoreAgreement, err = svc.Agreement(ctx, id, *s, q.FilterGroup)
	}
	return w, err
}

// Statistics sums up records by template version or something else, and compares two versions.
func (svc *Service) Statistics(
	ctx context.Context, id wire.Identity, q wire.PartsQuery,
) (w wire.Statistics, err error) {
	if err := svc.define(ctx, id, &q.StatisticsQuery); err != nil {
		return w, err
	}

	w = wire.Statistics{Success: true, Items: []wire.ValueTotals{}, PercentileError: wire.PercentileError}
	if q.By != "" || q.Compare == nil {
		sums := query.NewParts(q)
		progress, err := svc.sum(ctx, id, q.StatisticsQuery, query.PartsColumns(q), sums)
		if err != nil {
			return w, err
		}
		w = sums.Answer()
		w.Progress = progress
	}
	if q.Compare != nil {
		w.Comparison, err = svc.compareVersions(ctx, id, q)
	}

	return w, err
}

// define gives a query the definitions of the project's scores.
func (svc *Service) define(ctx context.Context, id wire.Identity, q *wire.StatisticsQuery) (err error) {
	if svc.config.Definitions != nil {
		q.Definitions, err = svc.config.Definitions.ScoreDefinitions(ctx, id)
	}
	return err
}

// compareBudget is how long the calls of two versions, or of a score's authors, are looked at.
const compareBudget = 3 * time.Second

// compareVersions compares the newest records of two versions of a template, as many as there is time
// for.
func (svc *Service) compareVersions(
	ctx context.Context, id wire.Identity, q wire.PartsQuery,
) (*wire.VersionComparison, error) {
	name, _ := json.Marshal(q.Template)
	versions, _ := json.Marshal(q.Compare)
	where := wire.Filter{Filters: []wire.Filter{
		{Field: "prompt_name", Operator: "is", Value: name},
		{Field: "prompt_version_number", Operator: "in", Value: versions},
	}}
	if q.FilterGroup != nil {
		where.Filters = append(where.Filters, *q.FilterGroup)
	}

	both := query.NewComparison(q, wire.ComparedMax)
	late, err := svc.newest(ctx, id, &where, query.ComparisonColumns, both.Add)
	if err != nil {
		return nil, err
	}

	return new(both.Answer(late)), nil
}

// Agreement compares the authors of the score that a sum is of, in the newest records that a filter finds.
// It reads as many as there is time for, and leaves out values that do not fit.
func (svc *Service) Agreement(
	ctx context.Context, id wire.Identity, s wire.ScoreSum, f *wire.Filter,
) (wire.ScoreAgreement, error) {
	var q wire.StatisticsQuery
	if err := svc.define(ctx, id, &q); err != nil {
		return wire.ScoreAgreement{}, err
	}
	value, _ := json.Marshal(s.Name)
	where := wire.Filter{Filters: []wire.Filter{{Field: "score_name", Operator: "is", Value: value}}}
	if f != nil {
		where.Filters = append(where.Filters, *f)
	}

	authors := query.NewAgreement(q.Definitions.OfSum(s), wire.ComparedMax)
	late, err := svc.newest(ctx, id, &where, query.AgreementColumns, authors.Add)
	if err != nil {
		return wire.ScoreAgreement{}, err
	}

	return authors.Answer(late), nil
}

// newest gives the rows that a filter finds to add, newest first, until it takes no more. late reports
// whether there was no time for all.
func (svc *Service) newest(
	ctx context.Context, id wire.Identity, where *wire.Filter, want rowcode.Columns,
	add func(row *wire.Row) (more bool),
) (late bool, err error) {
	q, err := query.CompileMatch(where)
	if err != nil {
		return false, err
	}

	defer svc.observeQuery(time.Now())
	timed, cancel := context.WithTimeout(ctx, compareBudget)
	defer cancel()
	_, err = svc.config.Store.Scan(timed, id.Account, q, want, func(row *wire.Row) (bool, error) {
		return add(row), nil
	})
	late = timed.Err() != nil && ctx.Err() == nil
	if late {
		err = nil
	}

	return late, err
}

// sum gives the rows that a query finds to sums, as many as its budget allows. Without one, only
// looking into bodies is bounded: the numbers are those of every record, at any load.
func (svc *Service) sum(
	ctx context.Context, id wire.Identity, s wire.StatisticsQuery, want rowcode.Columns, sums query.Sums,
) (wire.Progress, error) {
	q, err := query.CompileMatch(s.FilterGroup)
	if err != nil {
		return wire.Progress{}, err
	}

	defer svc.observeQuery(time.Now())
	// Few of those that may take long count at a time.
	if s.Budget > turnlessBudget {
		if err := svc.takeTurn(ctx, svc.counts, id.Account); err != nil {
			return wire.Progress{}, err
		}
		defer svc.counts.Leave(1)
	}
	part := partSums{Sums: sums, ctx: ctx}
	if s.Budget > 0 {
		var cancel context.CancelFunc
		part.ctx, cancel = context.WithTimeout(ctx, s.Budget)
		defer cancel()
	}

	var stopped *query.Position
	// All rows of a span count, so a store may answer from the sums that it has made of
	// them.
	if q.Spanned() {
		err = svc.config.Store.Sum(part.ctx, id.Account, q, want, &part)
	} else {
		if q.NeedsBody() || q.NeedsWhole() {
			q.Budget = statisticsBudget
		}
		stopped, err = svc.config.Store.Scan(part.ctx, id.Account, q, want, func(row *wire.Row) (bool, error) {
			return true, part.Add(row)
		})
	}

	switch {
	case err != nil && part.ctx.Err() != nil && ctx.Err() == nil:
		return wire.Progress{Incomplete: true, Since: part.at}, nil
	case err != nil || stopped == nil:
		return wire.Progress{}, err
	}

	return wire.Progress{Incomplete: true, Since: stopped.At}, nil
}

// partSums are sums of what is counted until a context ends: stores look at it only now and then.
type partSums struct {
	query.Sums
	ctx context.Context
	at  time.Time // the list time of the last row
}

// Add counts a row.
func (s *partSums) Add(row *wire.Row) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.at = row.ListTime

	return s.Sums.Add(row)
}

// Merge counts the rows of a summary, if it takes any.
func (s *partSums) Merge(summary []byte, exact bool) (merged bool, err error) {
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	merged, err = s.Sums.Merge(summary, exact)
	if merged {
		s.at = query.SummarySince(summary)
	}

	return merged, err
}

// Suggest returns values that a field has, those of the newest records first.
func (svc *Service) Suggest(
	ctx context.Context, id wire.Identity, s wire.SuggestQuery,
) (wire.Suggestions, error) {
	g, err := query.NewSuggestion(s)
	if err != nil {
		return wire.Suggestions{}, err
	}
	where, err := svc.ofTemplate(ctx, id.Account, s)
	if err != nil {
		return wire.Suggestions{}, err
	}
	q, err := query.CompileMatch(where)
	if err != nil {
		return wire.Suggestions{}, err
	}
	q.Budget = statisticsBudget

	begun, rows, budget, each := time.Now(), 0, s.Budget, 256
	defer svc.observeQuery(begun)
	isOver := func() bool {
		rows++
		return budget > 0 && rows%each == 0 && time.Since(begun) > budget
	}
	if g.Column() == rowcode.ColumnBody {
		// Each value costs the reading of a body, so the clock is looked at after each.
		each, budget = 1, cmp.Or(budget, statisticsBudget)
		complete, err := svc.suggestFromBodies(ctx, id, q, g, isOver)
		return wire.Suggestions{Success: true, Values: g.Values, Complete: complete}, err
	}

	w := wire.Suggestions{Success: true, Complete: true}
	want := rowcode.ColumnsOf(g.Column(), rowcode.ColumnID)
	stopped, err := svc.config.Store.Scan(ctx, id.Account, q, want, func(row *wire.Row) (bool, error) {
		more := g.Add(&query.Subject{Row: row}) && !isOver()
		w.Complete = w.Complete && more
		return more, nil
	})
	w.Values = g.Values
	w.Complete = w.Complete && stopped == nil

	return w, err
}

// suggestPage is how many positions are read ahead of the bodies that values
// are taken from.
const suggestPage = 64

// suggestFromBodies takes values from the bodies of what q finds, and reports whether
// it looked at all of them. It asks the store for each body while no scan is under
// way: a store that waits for exclusive access would wait for the scan, and the body
// for the store.
func (svc *Service) suggestFromBodies(
	ctx context.Context, id wire.Identity, q query.Query, g *query.Suggestion, isOver func() bool,
) (complete bool, err error) {
	for {
		page, stopped, err := svc.positions(ctx, id, q, suggestPage)
		if err != nil {
			return false, err
		}

		for _, p := range page {
			_, body, err := svc.config.Store.Record(ctx, id.Account, p.RequestID)
			if wire.IsCode(err, wire.CodeNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				return false, err
			}

			// The value is in the body. Of the row, no more than the id was read.
			s := query.Subject{
				Row:  &wire.Row{RequestID: p.RequestID},
				Body: func() ([]byte, error) { return body, nil },
			}
			if !g.Add(&s) || isOver() {
				return false, nil
			}
		}

		if len(page) < suggestPage {
			return stopped == nil, nil
		}
		q.After = &page[len(page)-1]
	}
}

// ofTemplate narrows the filter of suggestions to the template that they name by its id.
// Calls may be linked to it by its id or its name.
func (svc *Service) ofTemplate(ctx context.Context, account string, s wire.SuggestQuery) (*wire.Filter, error) {
	if s.TemplateID == "" {
		return s.FilterGroup, nil
	}
	names := []string{s.TemplateID}
	if svc.config.Versions != nil {
		latest, now := wire.Selector{}, svc.config.Now()
		name, _, err := svc.config.Versions.VersionAt(ctx, account, s.TemplateID, latest, now)
		// Calls may name a template by an id that this registry does not have (any more).
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
