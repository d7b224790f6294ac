package api

import (
	"strconv"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
)

// changesWaitMax bounds the long poll of /sync/changes.
const changesWaitMax = time.Minute

// Long polls that wait at the same time. More are answered immediately, so that they do not take the connections that
// others need: a poll that waits is a call under way, and those are never cut.
const (
	pollsMax      = 2000
	pollsOfKeyMax = 100
)

// syncEvents takes a batch from a sidecar: one event a line. It answers 200 only when every event in it has its result, and those
// that are accepted are durable.
func (a *API) syncEvents(c *call) error {
	b := a.newBatch(c.id.KeyID)
	defer b.body.claim.Release()
	events, err := b.events(c)
	if err != nil {
		return err
	}
	if err := a.limit(c, int(b.body.claim.Held())); err != nil {
		return err
	}
	if a.c.MaskBatches {
		maskEvents(events)
	}
	var results []wire.Result
	if len(events) > 0 {
		if results, err = a.c.Recorder.Record(c.life, c.id, events); err != nil {
			return err
		}
	}
	a.count(results)
	return c.answer(wire.Answer(results), nil)
}

// maskEvents masks the secrets in the bodies of events. One that cannot be read is left to whoever refuses it.
func maskEvents(events []wire.Event) {
	for i := range events {
		if object, err := wire.ParseObject(events[i].Body); err == nil {
			events[i].Body, _ = secrets.Mask(events[i].Body, object)
		}
	}
}

// syncKey tells a sidecar what a key is good for.
func (a *API) syncKey(c *call) error {
	return c.answer(wire.KeyVerdict{Success: true, Account: c.id.Account, KeyID: c.id.KeyID, Scope: c.id.Scope}, nil)
}

// syncChanges tells which templates changed after a revision, and waits for the first if there is none yet.
func (a *API) syncChanges(c *call) error {
	args := c.ctx.QueryArgs()
	q := wire.ChangesQuery{ProviderBaseURLs: string(args.Peek("provider_base_urls"))}
	var err error
	if text := string(args.Peek("since")); text != "" {
		if q.Since, err = strconv.ParseUint(text, 10, 64); err != nil {
			return wire.Invalid(wire.FieldError{Field: "since", Reason: "must be a revision: an integer of at least 0"})
		}
	}
	if text := string(args.Peek("wait")); text != "" {
		if q.Wait, err = time.ParseDuration(text); err != nil || q.Wait < 0 {
			return wire.Invalid(wire.FieldError{Field: "wait", Reason: "must be a duration such as 30s"})
		}
	}
	q.Wait = min(q.Wait, changesWaitMax)
	poll := a.polls.Claim(c.id.KeyID)
	defer poll.Release()
	if poll.Resize(1) != nil {
		q.Wait = 0 // a sidecar asks again after a second
	}

	changes, err := a.c.Changes.Changes(c.life, c.id, q)
	return c.answer(changes, err)
}
