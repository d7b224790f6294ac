package records

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
	"promptspool/spool/archive"
)

// Scan looks for secrets in the records of the account, after q.Cursor, for about 2 s
// or q.Limit records. It goes by ids, from the newest on. With q.Mask it masks them,
// durably and with an entry in the audit log by the time it returns. It reports where
// secrets are, never what they are.
func (svc *Service) Scan(ctx context.Context, id wire.Identity, q wire.ScanQuery) (wire.Scanned, error) {
	s := scan{
		archive: svc,
		id:      id,
		mask:    q.Mask,
		edits: edits{
			store:   svc.config.Store,
			account: id.Account,
			erase:   true,
			change:  (*archive.State).Mask,
		},
		answer: wire.Scanned{
			Success: true,
			Kinds:   map[wire.SecretKind]int{},
			Items:   []wire.FoundSecret{},
		},
	}
	w := svc.newWalk(id, q.Cursor, s.look)
	w.limit = q.Limit
	err := w.run(ctx)
	if err == nil {
		err = s.edits.flush(ctx)
	}
	s.answer.Masked, s.answer.Cursor, s.answer.Done = s.edits.changed, w.cursor, w.done

	// Earlier steps may have masked records although a later one failed.
	if auditErr := s.audit(ctx); err == nil {
		err = auditErr
	}
	if err != nil {
		return wire.Scanned{}, err
	}

	return s.answer, nil
}

// MaskAll masks the secrets in all records of the account, and returns how many
// records had any.
func (svc *Service) MaskAll(ctx context.Context, id wire.Identity) (masked int, err error) {
	cursor := ""
	for {
		answer, err := svc.Scan(ctx, id, wire.ScanQuery{Mask: true, Cursor: cursor})
		if err != nil {
			return masked, err
		}

		masked += answer.Masked
		if answer.Done {
			return masked, nil
		}
		cursor = answer.Cursor
	}
}

// scan is one call of Scan.
type scan struct {
	archive *Service
	id      wire.Identity
	mask    bool
	edits   edits // of the records to mask
	answer  wire.Scanned
}

// look counts and lists the secrets of a record, and masks records once enough are found.
func (s *scan) look(ctx context.Context, requestID string) error {
	state, bodies, err := s.archive.config.Store.Bodies(ctx, s.id.Account, requestID)
	if wire.IsCode(err, wire.CodeNotFound) {
		// Deleted meanwhile.
		return nil
	}
	if err != nil {
		return err
	}

	s.answer.Seen++
	n := 0
	for _, h := range state.History {
		n += s.report(requestID, h.ID, bodies[h.ID])
	}

	// Events whose bodies are not kept live on only in the state. The request in the
	// state comes from a kept body.
	left, err := json.Marshal(archive.State{
		Scores:   state.Scores,
		Metadata: state.Metadata,
		Prompt:   state.Prompt,
		GroupIDs: state.GroupIDs,
	})
	if err != nil {
		return err
	}
	if n += s.report(requestID, "", left); n == 0 {
		return nil
	}

	s.answer.Found++
	if !s.mask {
		return nil
	}

	return s.edits.add(ctx, &state)
}

// report counts and lists the secrets of a body, if there is one.
func (s *scan) report(requestID, eventID string, body []byte) (n int) {
	object, err := wire.ParseObject(body)
	if err != nil {
		return 0
	}
	// Every secret counts, but only so many are listed: the answer stays bounded.
	space := min(wire.ScanEventItems, wire.ScanItemsMax-len(s.answer.Items))
	found, n := secrets.Find(body, object, space, s.answer.Kinds)
	for _, finding := range found {
		s.answer.Items = append(s.answer.Items, wire.FoundSecret{
			RequestID:     requestID,
			EventID:       eventID,
			SecretFinding: finding,
		})
	}

	return n
}

// audit logs how many records were masked, and by whom.
func (s *scan) audit(ctx context.Context) error {
	log := s.archive.config.Audit
	if s.answer.Masked == 0 || log == nil {
		return nil
	}
	// A restore masks without anybody's key.
	actor := "this server"
	if s.id.KeyID != "" {
		actor = wire.KeyActor(s.id.KeyID)
	}

	return log.Audit(ctx, s.id.Account, wire.AuditEntry{
		ID:     wire.NewID(),
		At:     s.archive.config.Now().UTC(),
		Actor:  actor,
		Action: "mask secrets",
		Target: english.Plural(s.answer.Masked, "record", ""),
	})
}

// Reprice reads the account's requests again as this version understands them. Until then they show
// what the version read that stored them. Each is priced by today's table, as of its time.
//
// It continues after the cursor of an earlier call ("" for the first), newest first, for about 2 s. Its
// result is durable, and repeating it changes nothing. With an error it reports what was changed
// before that.
func (svc *Service) Reprice(ctx context.Context, id wire.Identity, cursor string) (wire.Repriced, error) {
	answer := wire.Repriced{Success: true}
	// Those that changed, by record.
	parts := make(map[string]wire.RepricedParts)
	change := func(s *archive.State, bodies map[string]json.RawMessage) (bool, error) {
		parts[s.RequestID] = svc.reprice(s, bodies)
		return parts[s.RequestID] != wire.RepricedParts{}, nil
	}
	e := edits{store: svc.config.Store, account: id.Account, change: change}
	w := svc.newWalk(id, cursor, func(ctx context.Context, requestID string) error {
		state, body, err := svc.config.Store.Record(ctx, id.Account, requestID)
		if wire.IsCode(err, wire.CodeNotFound) || err == nil && state.Request == nil {
			return nil
		}
		if err != nil {
			return err
		}

		answer.Seen++
		// Tried outside the transaction, for which writers wait: most stay as they were.
		tried := svc.reprice(&state, map[string]json.RawMessage{state.Request.ID: body})
		if tried == (wire.RepricedParts{}) {
			return nil
		}
		return e.add(ctx, &state)
	})
	err := w.run(ctx)
	if err == nil {
		err = e.flush(ctx)
	}
	for _, changed := range parts {
		answer.Parts.Add(changed)
	}
	answer.Changed, answer.Cursor, answer.Done = e.changed, w.cursor, w.done

	return answer, err
}

// reprice derives again what comes from the body of the request, and its price. It returns 1 for
// each part that changed.
func (svc *Service) reprice(s *archive.State, bodies map[string]json.RawMessage) (changed wire.RepricedParts) {
	if s.Request == nil {
		return changed
	}
	object, err := wire.ParseObject(s.ShownBody(bodies))
	i := slices.IndexFunc(s.History, func(h archive.Entry) bool { return h.ID == s.Request.ID })
	if err != nil || i < 0 {
		// The record keeps what was read when the body arrived.
		return changed
	}

	r := &s.Request.Value
	before := *r
	r.ReadAgain(s.History[i].Kind, object)
	r.SetPrice(svc.config.Prices, s.Request.At)

	return partsOf(&before, r)
}

// partsOf returns 1 for each part in which two requests differ, as they are stored.
func partsOf(before, after *archive.Request) (parts wire.RepricedParts) {
	stored, _ := json.Marshal(before)
	again, _ := json.Marshal(after)
	// Most stay as they were.
	if bytes.Equal(stored, again) {
		return parts
	}

	was, is := members(stored), members(again)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for name := range all {
		if !bytes.Equal(was[name], is[name]) {
			*partOf(&parts, name) = 1
		}
	}

	return parts
}

// members returns the members of a stored request.
func members(stored []byte) (all map[string]json.RawMessage) {
	_ = json.Unmarshal(stored, &all)

	return all
}

// partOf returns the part that a member of a stored request is of.
func partOf(parts *wire.RepricedParts, member string) *int {
	switch {
	case strings.HasSuffix(member, "_tokens"):
		return &parts.Tokens
	case strings.Contains(member, "price"):
		return &parts.Price
	case member == "status" || member == "error_type":
		return &parts.Status
	case member == "model" || member == "provider" || member == "asked" || member == "tier":
		return &parts.Model
	}

	return &parts.Text
}

// walkTime is how long one call walks before it reports how far it got.
const walkTime = 2 * time.Second

// walk looks at all records of an account in parts, by their ids, the newest first.
type walk struct {
	archive *Service
	account string
	ends    time.Time
	limit   int // records to look at; 0 if time alone bounds them
	look    func(ctx context.Context, requestID string) error

	seen   int
	cursor string // the last id that was looked at
	done   bool
}

// newWalk returns a walk that continues at the cursor of an earlier one, "" for the first.
func (svc *Service) newWalk(
	id wire.Identity, cursor string, look func(ctx context.Context, requestID string) error,
) *walk {
	return &walk{
		archive: svc,
		account: id.Account,
		ends:    svc.config.Now().Add(walkTime),
		look:    look,
		cursor:  cursor,
	}
}

// run looks at records from the cursor on until the time or the records run out. Every call gets
// at least one record further.
func (w *walk) run(ctx context.Context) error {
	for {
		ids, err := w.archive.idsAfter(ctx, w.account, w.cursor)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := w.look(ctx, id); err != nil {
				return err
			}
			w.cursor = id
			w.seen++
			if w.seen == w.limit || w.archive.config.Now().After(w.ends) {
				return nil
			}
		}

		if len(ids) < idsStep {
			w.cursor, w.done = "", true
			return nil
		}
	}
}

// idsStep is how many ids of records are read at a time.
const idsStep = 100

// idsAfter returns the next ids of an account's records, the highest first: those after another one, "" for
// the beginning. Fewer than idsStep are the last.
func (svc *Service) idsAfter(ctx context.Context, account, after string) ([]string, error) {
	if after != "" {
		var err error
		after, err = wire.ParseID(after)
		if err != nil {
			return nil, errCursor("cursor of an earlier answer")
		}
	}

	return svc.config.Store.IDs(ctx, account, after, idsStep)
}
