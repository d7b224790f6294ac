// Package alerts watches the calls of each project by its rules, and tells when one is no longer kept.
//
// A rule looks at windows of time that follow each other. A call belongs to the window in which it was received
// first, by a sidecar or by the server, so that one that takes long counts when its outcome is known, and one that
// a sidecar kept while the server was away counts in the window of its time, if that is still open. A window is
// judged once, after it has settled: one pass over its rows serves all rules of a project whose windows end
// then, so that each rule sees each row once.
//
// The outcome of a window is stored, with the notices of what begins and ends, in the transaction that checks
// that no other server has judged it. So there is one firing, whichever server judges and whenever one is
// killed. Servers judge at different moments, so that the later ones mostly find that all is done.
package alerts

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

const (
	every = time.Minute
	// settle is how long after its end a window is still open: calls are on their way from sidecars for a second
	// or two, and their scores and metadata follow them.
	settle = 20 * time.Second

	// apart is up to which servers judge after settle, at random.
	apart = 10 * time.Second

	// catchUp is how old windows may be that were missed because no server ran.
	catchUp = time.Hour

	// Calls that began longer ago than longest when they were received are not measured: they were imported, or
	// their exporter was away. Clocks of apps may be fast by ahead, see archive.ListTime.
	longest = time.Hour
	ahead   = 5 * time.Minute
)

// Records finds rows; see archive.Store.
type Records interface {
	Scan(
		ctx context.Context, account string, q query.Query, want rowcode.Columns,
		fn func(row *wire.Row) (more bool, err error),
	) (stopped *query.Position, err error)
}

// Store keeps alerts.
type Store interface {
	// Alerts returns the alerts of an account, sorted by name, and the newest of their history.
	Alerts(ctx context.Context, account string) ([]wire.Alert, []wire.Notice, error)

	// EachAlert calls fn with the alerts of all accounts, those of one after the other.
	EachAlert(ctx context.Context, fn func(account string, a wire.Alert) error) error

	// ChangeAlerts calls change with alerts, nil for one that does not exist, and stores what it
	// returns: nil deletes it. Notices are put on their way in the same transaction. change may run again.
	ChangeAlerts(
		ctx context.Context, account string, names []string,
		change func(name string, was *wire.Alert) (*wire.Alert, []wire.Notice, error),
	) error
}

// Config holds the parts of a Service. All are required, unless it says otherwise.
type Config struct {
	Store   Store
	Records Records
	Logger  *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// Service is a wire.Alerts that also judges. Safe for concurrent use.
type Service struct{ Config }

// New returns a Service, which judges while Run runs.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Service{c}
}

// Run judges each window after its end, until ctx ends. It never fails.
func (s *Service) Run(ctx context.Context) error {
	for {
		// After a start, sidecars first deliver what they have kept.
		now := s.Now()
		next := now.Truncate(every).Add(every + settle + rand.N(apart))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next.Sub(now)):
		}
		if err := s.Judge(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("alerts could not be judged; they will be in a minute", "error", err)
		}
	}
}

// Judge judges the windows that have ended.
func (s *Service) Judge(ctx context.Context) error {
	now, all := s.Now(), map[string][]wire.Alert{}
	err := s.Store.EachAlert(ctx, func(account string, a wire.Alert) error {
		all[account] = append(all[account], a)
		return nil
	})
	for account, alerts := range all {
		err = errors.Join(err, s.judge(ctx, account, alerts, now))
	}

	return err
}

// judge judges the windows of an account that have ended, the oldest of each rule first.
func (s *Service) judge(ctx context.Context, account string, alerts []wire.Alert, now time.Time) error {
	for {
		due := s.due(account, alerts, now)
		if len(due) == 0 {
			return nil
		}
		err := s.measure(ctx, account, slices.Collect(maps.Values(due)))
		if err == nil {
			err = s.store(ctx, account, due)
		}
		// After a time without a server, one window follows the other.
		if err == nil {
			alerts, _, err = s.Store.Alerts(ctx, account)
		}
		if err != nil {
			return err
		}
	}
}

// due returns the watches of the alerts with a window that has ended and was not judged, by name.
func (s *Service) due(account string, alerts []wire.Alert, now time.Time) map[string]*watch {
	due := map[string]*watch{}
	for _, a := range alerts {
		w, err := compile(a.AlertRule)
		if err != nil {
			s.Logger.Warn("this version cannot judge an alert", "project", account, "alert", a.Name, "error", err)
		} else if w.due(a.State.Until, now) {
			due[a.Name] = w
		}
	}
	return due
}

// measure gives the rows of the watches' windows to them, in one pass.
func (s *Service) measure(ctx context.Context, account string, due []*watch) error {
	// Rules with the same filter follow each other, so that it is asked once.
	slices.SortFunc(due, func(a, b *watch) int { return cmp.Compare(a.Filter, b.Filter) })
	start, end, want := due[0].start, due[0].end, rowcode.Columns(0)
	for _, w := range due {
		want |= w.columns()
		if w.start.Before(start) {
			start = w.start
		}
		if w.end.After(end) {
			end = w.end
		}
	}
	q, err := query.CompileMatch(received(start, end))
	if err != nil {
		return err
	}

	_, err = s.Records.Scan(ctx, account, q, want, func(row *wire.Row) (bool, error) {
		subject, matches := query.Subject{Row: row}, false
		var asked *watch
		for _, w := range due {
			if !w.has(row.AcceptedAt) {
				continue
			}
			if asked == nil || asked.Filter != w.Filter {
				asked, matches = w, w.query.Match(&subject)
			}
			if matches {
				w.add(row)
			}
		}
		return true, nil
	})
	return err
}

// received returns the filter of what was received in an interval, without its end.
func received(start, end time.Time) *wire.Filter {
	return &wire.Filter{Filters: []wire.Filter{
		wire.Where("accepted_at", "gte", start),
		wire.Where("accepted_at", "lt", end),
		// By these, a store finds them.
		wire.Where("list_time", "gte", start.Add(-longest)),
		wire.Where("list_time", "lt", end.Add(ahead)),
	}}
}

// store makes what the windows have shown durable.
func (s *Service) store(ctx context.Context, account string, due map[string]*watch) error {
	names := slices.Collect(maps.Keys(due))
	return s.Store.ChangeAlerts(ctx, account, names,
		func(name string, a *wire.Alert) (*wire.Alert, []wire.Notice, error) {
			// Another server may have judged the window, or a person may have changed the rule.
			w := due[name]
			if a == nil || !same(a.AlertRule, w.AlertRule) || !a.State.Until.Before(w.end) {
				return a, nil, nil
			}
			var notices []wire.Notice
			for _, c := range w.judge(&a.State) {
				notices = append(notices, w.notice(c))
			}
			return a, notices, nil
		})
}

func same(a, b wire.AlertRule) bool { return reflect.DeepEqual(a, b) }

// Alerts lists the alerts of a project.
func (s *Service) Alerts(ctx context.Context, id wire.Identity) (wire.AlertList, error) {
	alerts, history, err := s.Store.Alerts(ctx, id.Account)
	return wire.AlertList{Success: true, Items: alerts, History: history}, err
}

// PutAlert makes an alert, or replaces the rule of its name; see wire.Alerts.
func (s *Service) PutAlert(ctx context.Context, id wire.Identity, r wire.AlertRule) error {
	w, err := compile(r)
	if err != nil {
		return err
	}
	return s.Store.ChangeAlerts(ctx, id.Account, []string{r.Name},
		func(_ string, was *wire.Alert) (*wire.Alert, []wire.Notice, error) {
			now := s.Now().UTC()
			a := &wire.Alert{AlertRule: r, State: wire.AlertState{Until: now.Truncate(w.length())}}
			if was == nil {
				return a, nil, nil
			}

			// Other targets change neither what is measured nor the labels of what fires.
			ended := endAll(was, now)
			was.Targets = r.Targets
			if same(was.AlertRule, r) {
				return was, nil, nil
			}
			return a, ended, nil
		})
}

// RemoveAlert removes an alert; see wire.Alerts.
func (s *Service) RemoveAlert(ctx context.Context, id wire.Identity, name string) error {
	return s.Store.ChangeAlerts(ctx, id.Account, []string{name},
		func(_ string, was *wire.Alert) (*wire.Alert, []wire.Notice, error) {
			if was == nil {
				return nil, nil, wire.Errorf(wire.CodeNotFound, "There is no alert %.200q.", name)
			}
			return nil, endAll(was, s.Now()), nil
		})
}

// endAll returns the notices that an alert fires for nothing any more.
func endAll(a *wire.Alert, now time.Time) (notices []wire.Notice) {
	w := watch{AlertRule: a.AlertRule}
	for _, value := range a.State.Firing() {
		n := w.ended(value, now)
		n.Text = "The alert was changed or removed."
		notices = append(notices, n)
	}
	return notices
}
