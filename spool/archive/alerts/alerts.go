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
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"promptspool/api/filterline"
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

// Store keeps alerts, and what their rules name.
type Store interface {
	// Alerts returns the alerts of an account, sorted by name.
	Alerts(ctx context.Context, account string) ([]wire.Alert, error)

	// EachAlert calls fn with the alerts of all accounts.
	EachAlert(ctx context.Context, fn func(account string, a wire.Alert) error) error

	// ChangeAlerts calls change with alerts, nil for one that does not exist, and stores what it
	// returns: nil deletes it. Notices are put on their way in the same transaction. change may run again.
	ChangeAlerts(
		ctx context.Context, account string, names []string,
		change func(name string, was *wire.Alert) (*wire.Alert, []wire.Notice, error),
	) error

	// Views returns the views of a project; see wire.Views.
	Views(ctx context.Context, id wire.Identity) ([]wire.View, error)

	// SealedTargets returns the targets of a project.
	SealedTargets(ctx context.Context, id wire.Identity) ([]wire.SealedTarget, error)
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

// Judge judges the windows that have ended, the oldest of each rule first.
func (s *Service) Judge(ctx context.Context) error {
	now := s.Now()
	for {
		due, err := s.due(ctx, now)
		for account, watches := range due {
			err = errors.Join(err, s.judge(ctx, account, watches))
		}
		// After a time without a server, one window follows the other.
		if err != nil || len(due) == 0 {
			return err
		}
	}
}

// due returns, by account and name, the watches of the alerts with a window that has ended and was not judged.
func (s *Service) due(ctx context.Context, now time.Time) (map[string]map[string]*watch, error) {
	due := map[string]map[string]*watch{}
	err := s.Store.EachAlert(ctx, func(account string, a wire.Alert) error {
		// Few are due in a minute. The others need not be compiled, nor their views be read.
		next := watch{AlertRule: a.AlertRule}
		if !next.due(a.State.Until, now) {
			return nil
		}
		w, err := s.compile(ctx, account, a.AlertRule)
		if err != nil {
			s.Logger.Warn("an alert cannot be judged", "project", account, "alert", a.Name, "error", err)
			return nil
		}

		w.open(next.end)
		if due[account] == nil {
			due[account] = map[string]*watch{}
		}
		due[account][a.Name] = w
		return nil
	})
	return due, err
}

// judge measures the windows of watches in one pass, and makes durable what they show.
func (s *Service) judge(ctx context.Context, account string, due map[string]*watch) error {
	if err := s.measure(ctx, account, slices.Collect(maps.Values(due))); err != nil {
		return err
	}
	return s.Store.ChangeAlerts(ctx, account, slices.Collect(maps.Keys(due)),
		func(name string, a *wire.Alert) (*wire.Alert, []wire.Notice, error) {
			// Another server may have judged the window, or a person may have changed the rule.
			w := due[name]
			if a == nil || !same(a.AlertRule, w.AlertRule) || !a.State.Until.Before(w.end) {
				return a, nil, nil
			}
			return a, w.judge(&a.State), nil
		})
}

func same(a, b wire.AlertRule) bool { return reflect.DeepEqual(a, b) }

// measure gives the rows of the watches' windows to them.
func (s *Service) measure(ctx context.Context, account string, due []*watch) error {
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

	return s.scan(ctx, account, received(start, end), want, func(row *wire.Row) bool {
		subject := query.Subject{Row: row}
		for _, w := range due {
			if w.has(row.AcceptedAt) && w.query.Match(&subject) {
				w.add(row)
			}
		}
		return true
	})
}

// scan calls fn with the rows that a filter finds, the newest first, until it returns false.
func (s *Service) scan(
	ctx context.Context, account string, f *wire.Filter, want rowcode.Columns, fn func(*wire.Row) (more bool),
) error {
	q, err := query.CompileMatch(f)
	if err == nil {
		_, err = s.Records.Scan(ctx, account, q, want, func(row *wire.Row) (bool, error) { return fn(row), nil })
	}
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

// Alerts lists the alerts of a project; see wire.Alerts.
func (s *Service) Alerts(ctx context.Context, id wire.Identity) ([]wire.Alert, error) {
	all, err := s.Store.Alerts(ctx, id.Account)
	for i, a := range all {
		if _, err := s.compile(ctx, id.Account, a.AlertRule); err != nil {
			all[i].Error = wire.AsError(err).Message
		}
	}
	return all, err
}

// PutAlert makes an alert, or replaces the rule of its name; see wire.Alerts.
func (s *Service) PutAlert(ctx context.Context, id wire.Identity, r wire.AlertRule) error {
	w, err := s.compile(ctx, id.Account, r)
	if err == nil {
		err = s.checkTargets(ctx, id, r)
	}
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

			// An unchanged rule keeps its state.
			if same(was.AlertRule, r) {
				return was, nil, nil
			}
			ended := endAll(was, now)
			a.State.Fired, a.State.Firings = was.State.Fired, was.State.Firings
			return a, ended, nil
		})
}

// checkTargets refuses a rule for targets that do not exist.
func (s *Service) checkTargets(ctx context.Context, id wire.Identity, r wire.AlertRule) error {
	all, err := s.Store.SealedTargets(ctx, id)
	if err != nil {
		return err
	}
	for _, name := range r.Targets {
		if !slices.ContainsFunc(all, func(t wire.SealedTarget) bool { return t.Name == name }) {
			return wire.Invalid(wire.FieldError{Field: "targets", Reason: "there is no target " + name})
		}
	}
	return nil
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

// endAll ends what an alert fires for, and returns the notices of that.
func endAll(a *wire.Alert, now time.Time) (notices []wire.Notice) {
	w := watch{AlertRule: a.AlertRule, end: now.UTC()}
	for _, value := range a.State.Firing() {
		n := w.ended(value)
		n.Text = "The alert was changed or removed."
		notices = append(notices, n)
		a.State.End(value, w.end)
	}
	return notices
}

// compile returns the watch of a rule, without a window. Its errors are 422.
func (s *Service) compile(ctx context.Context, account string, r wire.AlertRule) (*watch, error) {
	line, err := filterline.Parse(r.Filter)
	if err == nil && r.View != "" {
		var of filterline.Line
		of, err = s.viewed(ctx, account, r.View)
		line = of.With(line.Terms...)
	}
	if err != nil {
		return nil, err
	}
	selected, err := line.Compile(filterline.Clock{Now: time.Now()})
	if err != nil {
		return nil, err
	}
	q, err := query.CompileMatch(selected)
	if err != nil {
		return nil, err
	}

	reason := ""
	from, to := q.Span()
	first, last := q.AcceptedSpan()
	switch {
	case q.NeedsBody():
		reason = "looks into prompts or responses, which alerts do not read; filter by tags, metadata or scores instead"
	case !from.IsZero() || !to.IsZero() || !first.IsZero() || !last.IsZero():
		reason = "must not name a time: an alert looks at one window after the other"
	}
	if reason != "" {
		return nil, wire.Invalid(wire.FieldError{Field: "filter", Reason: reason})
	}

	return &watch{AlertRule: r, line: line, selected: selected, query: q}, nil
}

// viewed returns the filter line of a view of the project.
func (s *Service) viewed(ctx context.Context, account, name string) (filterline.Line, error) {
	all, err := s.Store.Views(ctx, wire.Identity{Account: account})
	if err != nil {
		return filterline.Line{}, err
	}
	at := slices.IndexFunc(all, func(v wire.View) bool { return v.Name == name && !v.Own })
	if at < 0 {
		return filterline.Line{}, wire.Invalid(
			wire.FieldError{Field: "view", Reason: "is not the name of a view that is saved for the project"})
	}
	return filterline.Parse(all[at].Filter())
}
