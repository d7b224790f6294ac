package records

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Record folds events of the identity's account and returns a result for each, in their
// order. When it returns, accepted events are durable and can be found. On an error
// nothing was folded, and the same events may be sent again. It does not keep the events.
func (svc *Service) Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	// One moment for all: they arrived together.
	now := svc.config.Now()
	results := make([]wire.Result, len(events))
	decoded := make([]archive.Event, 0, len(events))
	// The place of each decoded event in events.
	places := make([]int, 0, len(events))
	for i, e := range events {
		results[i].ID = e.ID
		e.KeyID = keyOf(id, e.KeyID)
		d, ok := svc.decode(e, now, &results[i])
		if !ok {
			continue
		}

		// A key that may only write must not rewrite years of history; see ageMax.
		if earliest := notBefore(now); id.Scope&wire.ScopeManage == 0 && d.OrderTime.Before(earliest) {
			d.OrderTime = earliest
		}
		if err := svc.resolve(ctx, id.Account, &d); err != nil {
			return nil, err
		}
		if d.Request != nil {
			// Priced as of the call's own time. When the table changes
			// later, only Reprice changes what is stored.
			d.Request.SetPrice(svc.config.Prices, d.OrderTime)
		}
		d.Prices = svc.config.Prices
		decoded = append(decoded, d)
		places = append(places, i)
	}

	if err := svc.apply(ctx, id.Account, decoded, places, results); err != nil {
		return nil, err
	}
	svc.report(id.Account, results)

	return results, nil
}

// keyOf returns the key that an event came with, if that may do less than an app's. Who may import knows
// of which key an event was.
func keyOf(id wire.Identity, said string) string {
	switch {
	case id.Scope&wire.ScopeManage != 0:
		return said
	case id.Scope&wire.ScopeApp == wire.ScopeApp:
		return ""
	}

	return id.KeyID
}

// decode reads an event. If it cannot be folded, ok is false and the result says why.
func (svc *Service) decode(e wire.Event, now time.Time, result *wire.Result) (d archive.Event, ok bool) {
	// A newer sidecar may send kinds that only a newer server knows: it keeps
	// them until then.
	if !e.Kind.Known() {
		result.Code = wire.ResultLater
		result.Reason = fmt.Sprintf("this server does not know events of kind %.40q yet; upgrade it", e.Kind)
		return d, false
	}
	// A write that the server itself accepted goes by the server's name.
	if e.Sidecar == "" {
		e.Sidecar = svc.config.Name
	}
	d, err := archive.Decode(e, now)
	if err != nil {
		result.Code, result.Reason = wire.ResultInvalid, err.Error()
		return d, false
	}

	return d, true
}

// report counts results, and logs refusals: their sidecar buries these events as dead
// letters or keeps sending them.
func (svc *Service) report(account string, results []wire.Result) {
	refused, reason := 0, ""
	for _, r := range results {
		svc.config.Metrics.ArchiveEvents.WithLabelValues(string(r.Code)).Inc()
		if r.Reason != "" {
			refused++
			reason = r.Reason
		}
	}

	// One line for a batch: a sidecar with a fault sends a thousand at a time.
	if refused > 0 {
		svc.config.Logger.Warn("events were refused",
			"project", account, "refused", refused, "last_reason", reason)
	}
}

// apply hands events to the Store and puts their results where places says.
func (svc *Service) apply(
	ctx context.Context, account string, events []archive.Event, places []int, results []wire.Result,
) error {
	if len(events) == 0 {
		return nil
	}

	start := time.Now()
	applied, err := svc.config.Store.Apply(ctx, account, events)
	if err != nil {
		return err
	}
	svc.config.Metrics.ArchiveBatchEvents.Observe(float64(len(events)))
	svc.config.Metrics.ArchiveApplySeconds.Observe(time.Since(start).Seconds())
	// Events that could not be decoded have their results already.
	left := false
	for i, place := range places {
		results[place] = applied[i]
		left = left || applied[i].Leaves
	}
	if left {
		go svc.doLeft(account)
	}

	return nil
}

// resolve fills in a link's template name and version. The version that the sidecar knew
// when it accepted the event wins, because the app used that. Otherwise the registry's
// history decides, as of the event's order time.
func (svc *Service) resolve(ctx context.Context, account string, e *archive.Event) error {
	link := e.TemplateLink()
	if link == nil {
		return nil
	}

	if link.Label != "" {
		// The label wins over the version.
		link.Version = 0
	}
	if e.Version > 0 {
		link.Version = e.Version
	}
	// A number may be a template's id. It is looked up even with a
	// version, because the record shows the name.
	if svc.config.Versions == nil || link.Version > 0 && !isNumber(link.Name) {
		return nil
	}

	selector := wire.Selector{Version: link.Version}
	if selector.Version == 0 {
		selector.Label = link.Label
	}
	name, version, err := svc.config.Versions.VersionAt(ctx, account, link.Name, selector, e.OrderTime)
	switch {
	// An unknown template is not a reason to refuse the event: its app
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
func isNumber(ident string) bool { return ident != "" && strings.Trim(ident, "0123456789") == "" }

// ageMax is how long before its arrival an event may be ordered, unless a key of scope
// full imports it. So a key that may only write cannot rewrite years of history, while a
// sidecar may be away for a year.
const ageMax = 400 * 24 * time.Hour

// notBefore returns the earliest order time of what arrives now. It moves once an
// hour. Older events share it and keep the order of their ids, which sidecars mint in
// order of acceptance.
func notBefore(now time.Time) time.Time {
	return now.UTC().Round(0).Add(-ageMax).Truncate(time.Hour).Add(time.Hour)
}

// leftPause is how often a server looks for what another one, or an upgrade, left.
const leftPause = time.Minute

// DoLeft does what was left to do in all accounts: now, and now and then until ctx ends.
func (svc *Service) DoLeft(ctx context.Context) error {
	for {
		accounts, err := svc.config.Store.Accounts(ctx)
		for _, account := range accounts {
			svc.doLeft(account)
		}
		if err != nil && ctx.Err() == nil {
			svc.config.Logger.Warn("Cannot look for traces that do not show everything yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(leftPause):
		}
	}
}

// doLeft does what was left to do in an account, unless this server is doing it.
func (svc *Service) doLeft(account string) {
	// No request waits for it, and after a restart it continues.
	ctx := context.Background()
	for {
		todos, err := archive.ToDos(ctx, svc.config.Store, account)
		if err == nil && len(todos) == 0 {
			return
		}
		if _, busy := svc.doing.LoadOrStore(account, true); busy {
			// The one that does it looks again at the end.
			return
		}

		err = cmp.Or(err, archive.DoLeft(ctx, svc.config.Store, account))
		if err != nil {
			svc.config.Logger.Warn("Calls do not show the user and session of their trace yet; this is tried again",
				"project", account, "error", err)
		}
		svc.doing.Delete(account)
		if err != nil {
			return
		}
	}
}

// isLeft reports whether this server does what was left to do in an account: until then answers are not
// complete.
func (svc *Service) isLeft(account string) bool {
	_, busy := svc.doing.Load(account)
	return busy
}
