package alerts

import (
	"context"
	"slices"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

// Bounds of a look at the past.
const (
	tested        = 30 * 24 * time.Hour
	testFor       = 5 * time.Second
	testedMax     = 50_000 // values of all windows together
	testedFirings = 100
)

// TestAlert looks at how often a rule would have fired in the last 30 days; see wire.Alerts.
func (s *Service) TestAlert(ctx context.Context, id wire.Identity, r wire.AlertRule) (wire.AlertTest, error) {
	w, err := compile(r)
	if err != nil {
		return wire.AlertTest{}, err
	}
	last := s.Now().UTC().Truncate(w.length())
	first := last.Add(-tested).Truncate(w.length())
	windows, first, partial, err := s.past(ctx, id.Account, w, first, last)
	if err != nil {
		return wire.AlertTest{}, err
	}

	answer := wire.AlertTest{Success: true, Since: first, Partial: partial, Firings: []wire.AlertFiring{}}
	var state wire.AlertState
	for end := first.Add(w.length()); !end.After(last); end = end.Add(w.length()) {
		answer.Windows++
		p := windows[end]
		if p == nil {
			p = w
			p.open(end)
		}
		for _, c := range p.judge(&state) {
			count(&answer, c, end)
		}
	}
	slices.Reverse(answer.Firings)
	answer.Firings = answer.Firings[:min(len(answer.Firings), testedFirings)]

	return answer, nil
}

// count counts a firing, or notes the end of one.
func count(answer *wire.AlertTest, c change, at time.Time) {
	if c.is.Firing != nil {
		answer.Fired++
		if len(answer.Firings) > 2*testedFirings {
			answer.Firings = slices.Delete(answer.Firings, 0, testedFirings)
		}
		f := wire.AlertFiring{By: c.value, At: at, Value: c.is.Value}
		answer.Firings = append(answer.Firings, f)
		return
	}

	for i := range answer.Firings {
		if f := &answer.Firings[i]; f.By == c.value && f.Until.IsZero() {
			f.Until = at
		}
	}
}

// past measures the windows of an interval, by their ends, as many of the newest as there is time and memory
// for. It returns the beginning of the first.
func (s *Service) past(
	ctx context.Context, account string, w *watch, first, last time.Time,
) (windows map[time.Time]*watch, from time.Time, partial bool, err error) {
	q, err := query.CompileMatch(filterline.Both(received(first, last), w.selected))
	if err != nil {
		return nil, first, false, err
	}
	timed, cancel := context.WithTimeout(ctx, testFor)
	defer cancel()

	windows, oldest, values := map[time.Time]*watch{}, last, 0
	_, err = s.Records.Scan(timed, account, q, w.columns(), func(row *wire.Row) (bool, error) {
		end := row.AcceptedAt.UTC().Truncate(w.length()).Add(w.length())
		p := windows[end]
		if p == nil {
			p = new(*w)
			p.open(end)
			windows[end] = p
		}
		before := len(p.values)
		p.add(row)
		values += len(p.values) - before
		oldest = row.ListTime
		return values < testedMax, nil
	})

	// Of a window that is whole, all calls that began before it were seen as well.
	partial = timed.Err() != nil && ctx.Err() == nil || values >= testedMax
	if partial {
		err = nil
		first = oldest.Add(longest).UTC().Truncate(w.length()).Add(w.length())
		if first.After(last) {
			first = last
		}
	}
	return windows, first, partial, err
}
