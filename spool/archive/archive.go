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

// Config is what an Archive is made of.
type Config struct {
	Store    Store
	Versions Versions         // nil: links without a version keep it unknown
	Prices   *prices.Table    // nil: those that come with the program
	Metrics  *metrics.Metrics // required
	Logger   *slog.Logger     // nil: slog.Default
	Now      func() time.Time // nil: time.Now
	Name     string           // stands in events that say no sidecar: the server accepted them itself
	Audit    AuditLog         // nil: nothing is noted
}

// AuditLog keeps what somebody changed.
type AuditLog interface {
	Audit(ctx context.Context, account string, e wire.AuditEntry) error
}

// Archive folds events into a Store and answers questions about records. Safe for concurrent use, if the Store is.
type Archive struct{ config Config }

// New makes an Archive. It owns no goroutine and needs no closing; the Store is the caller's to close.
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

// Record folds events of the identity's account and returns a result for each, in their order. When it returns, those
// accepted are durable and findable. On an error nothing was folded and all may be sent again. It does not keep the
// events.
func (a *Archive) Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	if err := checkAccount(id); err != nil {
		return nil, err
	}
	results := make([]wire.Result, len(events))
	decoded := make([]Event, 0, len(events))
	places := make([]int, 0, len(events)) // of decoded, in events
	now := a.config.Now()
	for i, e := range events {
		results[i].ID = e.ID
		if !e.Kind.Known() {
			results[i].Code = wire.ResultLater
			results[i].Reason = fmt.Sprintf("this server does not know events of kind %.40q yet; upgrade it", e.Kind)
			continue
		}
		if e.Sidecar == "" {
			e.Sidecar = a.config.Name
		}
		d, err := Decode(e, now)
		if err != nil {
			results[i].Code, results[i].Reason = wire.ResultInvalid, err.Error()
			continue
		}
		if least := notBefore(now); id.Scope != wire.ScopeFull && d.OrderTime.Before(least) {
			d.OrderTime = least
		}
		if err := a.resolve(ctx, id.Account, &d); err != nil {
			return nil, err
		}
		if d.Request != nil {
			d.Request.price(a.config.Prices, d.OrderTime)
		}
		decoded, places = append(decoded, d), append(places, i)
	}
	if err := a.apply(ctx, id.Account, decoded, places, results); err != nil {
		return nil, err
	}
	a.tell(id.Account, results)
	return results, nil
}

// tell counts results, and logs that some were refused: their sidecar has them as dead letters, or sends them for ever.
func (a *Archive) tell(account string, results []wire.Result) {
	refused, reason := 0, ""
	for _, r := range results {
		a.config.Metrics.ArchiveEvents.WithLabelValues(string(r.Code)).Inc()
		if r.Reason != "" {
			refused, reason = refused+1, r.Reason
		}
	}
	if refused > 0 {
		a.config.Logger.Warn("events were refused", "account", account, "refused", refused, "last_reason", reason)
	}
}

func (a *Archive) apply(ctx context.Context, account string, events []Event, places []int, results []wire.Result) error {
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
	for i, place := range places {
		results[place] = applied[i]
	}
	return nil
}

// resolve fills in a link's template name and version. What the sidecar knew when it accepted the event wins: it is what
// the app used. Otherwise the registry's history tells, as of the event's order time.
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
	if a.config.Versions == nil || link.Version > 0 && !isNumber(link.Name) {
		return nil
	}
	sel := wire.Selector{Version: link.Version}
	if sel.Version == 0 {
		sel.Label = link.Label
	}
	name, version, err := a.config.Versions.VersionAt(ctx, account, link.Name, sel, e.OrderTime)
	switch {
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

// isNumber says whether a template's ident may be an id.
func isNumber(ident string) bool {
	for _, c := range []byte(ident) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return ident != ""
}

// checkAccount keeps data from being filed under no account, should a caller ever come here without having proved who it is.
func checkAccount(id wire.Identity) error {
	if id.Account == "" {
		return wire.Errorf(wire.CodeUnauthorized, "The key is not known to this server. Make one with \"promptspool keys create\".")
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
		return wire.Record{}, wire.Errorf(wire.CodeNotFound, "There is no such request: a request_id %v.", err)
	}
	state, body, err := a.config.Store.Record(ctx, id.Account, parsed)
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		return wire.Record{}, wire.Errorf(wire.CodeNotFound,
			"This account has no request %s. If it was just accepted by a sidecar, it may still be on its way.", parsed)
	case err != nil:
		return wire.Record{}, err
	case state.Orphan():
		return wire.Record{}, wire.Errorf(wire.CodeNotFound,
			"The request %s has not come yet. %s for it arrived already, and will be part of it when it comes.",
			parsed, english.Plural(len(state.History), "event", ""))
	}

	record := state.View(body)
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
	defer a.timed(time.Now())
	page, err := a.config.Store.Search(ctx, id.Account, q)
	if err != nil {
		return wire.SearchPage{}, err
	}
	return q.Answer(page), nil
}

// timed counts the time of a question to the store that began then.
func (a *Archive) timed(began time.Time) {
	a.config.Metrics.ArchiveQuerySeconds.Observe(time.Since(began).Seconds())
}
