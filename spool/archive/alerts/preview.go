package alerts

import (
	"context"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// Bounds of a look at the past.
const (
	tested    = 30 * 24 * time.Hour
	testFor   = 5 * time.Second
	testedMax = 50_000 // values of all windows together
)

// TestAlert looks at how often a rule would have fired in the last 30 days; see wire.Alerts.
func (s *Service) TestAlert(ctx context.Context, id wire.Identity, r wire.AlertRule) (wire.AlertTest, error) {
	w, err := s.compile(ctx, id.Account, r)
	if err != nil {
		return wire.AlertTest{}, err
	}
	last := s.Now().UTC().Truncate(w.length())
	first := last.Add(-tested).Truncate(w.length())
	windows, since, err := s.past(ctx, id.Account, w, first, last)
	if err != nil {
		return wire.AlertTest{}, err
	}

	answer := wire.AlertTest{Success: true, Since: since, Partial: since.After(first)}
	state := wire.AlertState{Firings: []wire.AlertFiring{}}
	for end := since.Add(w.length()); !end.After(last); end = end.Add(w.length()) {
		answer.Windows++
		p := windows[end]
		if p == nil {
			p = w
			p.open(end)
		}
		p.judge(&state)
	}
	answer.Fired, answer.Firings = state.Fired, state.Firings

	return answer, nil
}

// past measures the windows of an interval, by their ends, as many of the newest as there is time and memory
// for. It returns the beginning of the first.
func (s *Service) past(
	ctx context.Context, account string, w *watch, first, last time.Time,
) (windows map[time.Time]*watch, from time.Time, err error) {
	timed, cancel := context.WithTimeout(ctx, testFor)
	defer cancel()

	windows, oldest, values := map[time.Time]*watch{}, last, 0
	found := filterline.Both(received(first, last), w.selected)
	err = s.scan(timed, account, found, w.columns(), func(row *wire.Row) bool {
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
		return values < testedMax
	})
	isPartial := timed.Err() != nil && ctx.Err() == nil || values >= testedMax
	if !isPartial {
		return windows, first, err
	}

	// Of a window that is whole, all calls that began before it were seen as well.
	whole := oldest.Add(longest).UTC().Truncate(w.length()).Add(w.length())
	if whole.After(last) {
		whole = last
	}
	return windows, whole, nil
}
