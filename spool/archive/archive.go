package archive

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/registry/prices"
	"promptspool/spool/archive/query"
)

// Config holds the parts of an Archive.
type Config struct {
	Store    Store
	Versions Versions         // nil: links without a version keep it unknown
	Prices   *prices.Table    // nil: those that come with the program
	Metrics  *metrics.Metrics // required
	Logger   *slog.Logger     // nil: slog.Default
	Now      func() time.Time // nil: time.Now
	Name     string           // names this server in events that no sidecar accepted
	Audit    wire.AuditLog    // nil: nothing is logged
}

// Archive folds events into a Store and answers questions about records. It is safe for
// concurrent use if the Store is.
type Archive struct{ config Config }

// New returns an Archive. It starts no goroutine and needs no closing; the Store is the
// caller's to close.
func New(c Config) *Archive {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Prices == nil {
		c.Prices = prices.BuiltIn()
	}

	return &Archive{c}
}

// Record folds events of the identity's account and returns a result for each, in their
// order. When it returns, accepted events are durable and can be found. On an error
// nothing was folded, and the same events may be sent again. It does not keep the events.
func (a *Archive) Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	if err := checkAccount(id); err != nil {
		return nil, err
	}
	// One moment for all: they arrived together.
	now := a.config.Now()
	results := make([]wire.Result, len(events))
	decoded := make([]Event, 0, len(events))
	places := make([]int, 0, len(events)) // of each decoded event in events
	for i, e := range events {
		results[i].ID = e.ID
		d, ok := a.decode(e, now, &results[i])
		if !ok {
			continue
		}

		// A key that may only write must not rewrite years of history; see ageMax.
		if earliest := notBefore(now); id.Scope != wire.ScopeFull && d.OrderTime.Before(earliest) {
			d.OrderTime = earliest
		}
		if err := a.resolve(ctx, id.Account, &d); err != nil {
			return nil, err
		}
		if d.Request != nil {
			// Priced as of the call's own time. When the table changes
			// later, only Reprice changes what is stored.
			d.Request.price(a.config.Prices, d.OrderTime)
		}
		decoded = append(decoded, d)
		places = append(places, i)
	}

	if err := a.apply(ctx, id.Account, decoded, places, results); err != nil {
		return nil, err
	}
	applied := make([]wire.Result, len(decoded))
	for i, place := range places {
		applied[i] = results[place]
	}
	if err := a.joinLogs(ctx, id.Account, decoded, applied); err != nil {
		return nil, err
	}
	a.report(id.Account, results)

	return results, nil
}

// decode reads an event. If it cannot be folded, ok is false and the result says why.
func (a *Archive) decode(e wire.Event, now time.Time, result *wire.Result) (d Event, ok bool) {
	// A newer sidecar may send kinds that only a newer server knows: it keeps
	// them until then.
	if !e.Kind.Known() {
		result.Code = wire.ResultLater
		result.Reason = fmt.Sprintf("this server does not know events of kind %.40q yet; upgrade it", e.Kind)
		return d, false
	}
	// A write that the server itself accepted goes by the server's name.
	if e.Sidecar == "" {
		e.Sidecar = a.config.Name
	}
	d, err := Decode(e, now)
	if err != nil {
		result.Code, result.Reason = wire.ResultInvalid, err.Error()
		return d, false
	}

	return d, true
}

// report counts results, and logs refusals: their sidecar buries these events as dead
// letters or keeps sending them.
func (a *Archive) report(account string, results []wire.Result) {
	refused, reason := 0, ""
	for _, r := range results {
		a.config.Metrics.ArchiveEvents.WithLabelValues(string(r.Code)).Inc()
		if r.Reason != "" {
			refused++
			reason = r.Reason
		}
	}

	// One line for a batch: a sidecar with a fault sends a thousand at a time.
	if refused > 0 {
		a.config.Logger.Warn("events were refused",
			"account", account, "refused", refused, "last_reason", reason)
	}
}

// apply hands events to the Store and puts their results where places says.
func (a *Archive) apply(
	ctx context.Context, account string, events []Event, places []int, results []wire.Result,
) error {
	if len(events) == 0 {
		return nil
	}

	start := time.Now()
	applied, err := a.config.Store.Apply(ctx, account, events)
	if err != nil {
		return err
	}
	a.config.Metrics.ArchiveBatchEvents.Observe(float64(len(events)))
	a.config.Metrics.ArchiveApplySeconds.Observe(time.Since(start).Seconds())
	// Events that could not be decoded have their results already.
	for i, place := range places {
		results[place] = applied[i]
	}

	return nil
}

// resolve fills in a link's template name and version. What the sidecar knew when it
// accepted the event wins, because the app used that. Otherwise the registry's history
// decides, as of the event's order time.
func (a *Archive) resolve(ctx context.Context, account string, e *Event) error {
	link := e.link()
	if link == nil {
		return nil
	}

	if link.Label != "" {
		link.Version = 0 // the label wins over the version
	}
	if e.Version > 0 {
		link.Version = e.Version
	}
	// A number may be a template's id. It is looked up even with a
	// version, because the record shows the name.
	if a.config.Versions == nil || link.Version > 0 && !isNumber(link.Name) {
		return nil
	}

	selector := wire.Selector{Version: link.Version}
	if selector.Version == 0 {
		selector.Label = link.Label
	}
	name, version, err := a.config.Versions.VersionAt(ctx, account, link.Name, selector, e.OrderTime)
	switch {
	// An unknown template is no reason to refuse the event: its app
	// already has a 200. The link stays as it was sent.
	case wire.IsCode(err, wire.CodeNotFound):
		return nil
	case err != nil:
		return err
	}

	link.Name = name
	if link.Version == 0 {
		link.Version = version
	}

	return nil
}

// isNumber reports whether a template's identifier may be an id.
func isNumber(ident string) bool {
	for _, c := range []byte(ident) {
		if c < '0' || c > '9' {
			return false
		}
	}

	return ident != ""
}

// checkAccount rejects callers without an account. No caller should get here
// unauthenticated; if one does, nothing may be filed under an empty account.
func checkAccount(id wire.Identity) error {
	if id.Account == "" {
		return wire.Errorf(wire.CodeUnauthorized,
			"This server does not know the key. Create one with \"promptspool keys create\".")
	}

	return nil
}

// Request returns a record of the identity's account.
func (a *Archive) Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error) {
	if err := checkAccount(id); err != nil {
		return wire.Record{}, err
	}
	parsed, err := wire.ParseID(requestID)
	if err != nil {
		return wire.Record{}, wire.Errorf(wire.CodeNotFound,
			"There is no such request: a request_id %v.", err)
	}

	state, body, err := a.config.Store.Record(ctx, id.Account, parsed)
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return wire.Record{}, wire.Errorf(wire.CodeNotFound,
			"This account has no request %s. If a sidecar has just accepted it, it may still be on its way.",
			parsed)
	case err != nil:
		return wire.Record{}, err
	// A span is shown, with whatever was attached to it: no request need ever follow.
	case state.Request == nil && state.Span == nil:
		return wire.Record{}, wire.Errorf(wire.CodeNotFound,
			"The request %s has not arrived yet. %s for it arrived already and will be part of it.",
			parsed, english.Plural(len(state.History), "event", ""))
	}

	record := state.view(ctx, body)
	if ctx.Err() != nil {
		return wire.Record{}, wire.Unavailable(0, "The call ended before it was answered: %w", ctx.Err())
	}
	if err := a.linkRecord(ctx, id.Account, &state, &record); err != nil {
		return wire.Record{}, err
	}
	if err := a.settleConflicts(ctx, id, &record); err != nil {
		return wire.Record{}, err
	}

	return record, nil
}

// Search finds records of the identity's account, newest first.
func (a *Archive) Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error) {
	if err := checkAccount(id); err != nil {
		return wire.SearchPage{}, err
	}
	q, err := query.Compile(s)
	if err != nil {
		return wire.SearchPage{}, err
	}

	return a.search(ctx, id, q)
}

func (a *Archive) search(ctx context.Context, id wire.Identity, q query.Query) (wire.SearchPage, error) {
	defer a.observeQuery(time.Now())
	page, err := a.config.Store.Search(ctx, id.Account, q)
	if err != nil {
		return wire.SearchPage{}, err
	}

	return q.Answer(page), nil
}

// observeQuery records how long a question to the store took.
func (a *Archive) observeQuery(start time.Time) {
	a.config.Metrics.ArchiveQuerySeconds.Observe(time.Since(start).Seconds())
}
