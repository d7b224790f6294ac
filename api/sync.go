package api

import (
	"fmt"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
)

// changesWaitMax bounds the long poll of /sync/changes.
const changesWaitMax = time.Minute

// Long polls that wait at the same time. More are answered immediately, so that they do not take
// the connections that others need: a poll that waits is a request under way, and those are never
// cut.
const (
	pollsMax      = 2000
	pollsOfKeyMax = 100
)

// syncEvents takes a batch from a sidecar, one event a line. It answers 200 only when every event
// in it has its result, and those that are accepted are durable.
func (a *API) syncEvents(c *exchange) error {
	batch := a.intake.NewBatch(c.id.KeyID)
	defer batch.Release()
	events, err := batch.Read(c.context, c.ctx)
	if err != nil {
		return err
	}

	// Only now is it known how many bytes the batch has, unpacked.
	if err := a.limit(c, int(batch.Held())); err != nil {
		return err
	}
	events, refused := a.refuse(c.id, events)
	if a.c.MaskBatches {
		maskEvents(events)
	}

	var results []wire.Result
	if len(events) > 0 {
		results, err = a.c.Recorder.Record(c.context, c.id, events)
		if err != nil {
			return err
		}
	}
	results = append(results, refused...)
	a.count(results)

	return answer(c, wire.Answer(results), nil)
}

// refuse returns the events that may be recorded, and a result for each other event. It
// overwrites events.
func (a *API) refuse(id wire.Identity, events []wire.Event) (taken []wire.Event, refused []wire.Result) {
	now := a.c.Clock.Now()
	taken = slices.DeleteFunc(events, func(e wire.Event) bool {
		r := wire.Result{ID: e.ID}
		r.Code, r.Reason = fault(id, e, now)
		if r.Reason != "" {
			refused = append(refused, r)
		}
		return r.Reason != ""
	})

	return taken, refused
}

// clockTolerance is how far the clock of a sidecar may be ahead of ours when a key ends. A write that it
// accepted by then, knowing that its clock is ahead, is not refused. It opens nothing: a caller
// who has the key can give any time.
const clockTolerance = 5 * time.Minute

// fault says why an event may not be recorded, "" if it may. A sidecar accepts some writes before it
// can ask for the key's rights and end.
func fault(id wire.Identity, e wire.Event, now time.Time) (code wire.ResultCode, reason string) {
	accepted := e.AcceptedAt
	if accepted.After(now) {
		accepted = now
	}

	// Only a newer server knows which right an unknown kind needs: the event waits for one.
	right := e.Kind.Scope()
	switch {
	case len(e.Sidecar) > wire.SidecarBytesMax: // no sidecar has it: --name has the same bound
		return wire.ResultInvalid, fmt.Sprintf("sidecar must be a name of at most %d bytes; this one has %d",
			wire.SidecarBytesMax, len(e.Sidecar))
	case e.Kind.Known() && id.Scope&right == 0:
		return wire.ResultForbidden, fmt.Sprintf("the key %s has the scope %s, and may not %s",
			id.KeyID, id.Scope, right)
	case !id.Expires.IsZero() && accepted.Add(-clockTolerance).After(id.Expires):
		return wire.ResultForbidden, fmt.Sprintf(
			"the key %s expired on %s, before this was accepted; replay it with another key",
			id.KeyID, id.Expires.UTC().Format(time.RFC3339))
	}
	return "", ""
}

// maskEvents masks the secrets in the bodies of events. It skips a body that cannot be read,
// which the recorder rejects.
func maskEvents(events []wire.Event) {
	for i := range events {
		if object, err := wire.ParseObject(events[i].Body); err == nil {
			events[i].Body, _ = secrets.Mask(events[i].Body, object)
		}
	}
}

// syncKey returns what the caller's key is good for.
func (a *API) syncKey(c *exchange) error {
	return answer(c, wire.KeyVerdict{
		Success:   true,
		Account:   c.id.Account,
		KeyID:     c.id.KeyID,
		Scope:     c.id.Scope,
		Prefix:    c.id.Prefix,
		ExpiresAt: c.id.Expires,
	}, nil)
}

// syncChanges lists which templates changed after a revision. If none has yet, it waits for one.
func (a *API) syncChanges(c *exchange, q wire.ChangesQuery) error {
	q.Wait = min(q.Wait, changesWaitMax)

	// A sidecar whose poll finds no place asks again after a second.
	poll := a.polls.Claim(c.id.KeyID)
	defer poll.Release()
	if poll.Resize(1) != nil {
		q.Wait = 0
	}

	changes, err := a.c.Changes.Changes(c.context, c.id, q)
	return answer(c, changes, err)
}

// heartbeat records what a sidecar reports.
func (a *API) heartbeat(c *exchange) error {
	h, err := wire.DecodeHeartbeat(c.body)
	if err != nil {
		return err
	}
	return answer(c, map[string]bool{"success": true}, a.c.Fleet.Beat(c.context, c.id, h))
}

// listFleet lists the account's sidecars.
func (a *API) listFleet(c *exchange) error {
	fleet, err := a.c.Fleet.Fleet(c.context, c.id)
	return answer(c, fleet, err)
}
