package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
	"promptspool/spool/archive/query"
)

const (
	scanTime      = 2 * time.Second // for which one call works before it tells how far it has come
	maskStep      = 100             // records that one transaction masks
	maskBytesStep = 8 << 20         // of their bodies, unless one alone has more
)

// Scan looks for secrets in all records of the account, newest first and orphans last, behind q.Cursor, for about 2 s.
// With q.Mask it masks those that it finds, which is durable and in the audit log when it returns. It tells where
// secrets are, never what they are.
func (a *Archive) Scan(ctx context.Context, id wire.Identity, q wire.ScanQuery) (wire.Scanned, error) {
	if err := checkAccount(id); err != nil {
		return wire.Scanned{}, err
	}

	s := scan{
		archive: a, id: id, mask: q.Mask, ends: a.config.Now().Add(scanTime),
		told: wire.Scanned{Success: true, Kinds: map[wire.SecretKind]int{}, Items: []wire.FoundSecret{}, Cursor: q.Cursor},
	}
	err := s.run(ctx)
	if err == nil {
		err = s.flush(ctx)
	}
	if noteErr := s.note(ctx); err == nil {
		err = noteErr
	}
	if err != nil {
		return wire.Scanned{}, err
	}
	return s.told, nil
}

// MaskAll masks the secrets in all records of the account, and returns how many records had any.
func (a *Archive) MaskAll(ctx context.Context, id wire.Identity) (masked int, err error) {
	for cursor := ""; ; {
		told, err := a.Scan(ctx, id, wire.ScanQuery{Mask: true, Cursor: cursor})
		if err != nil {
			return masked, err
		}
		masked += told.Masked
		if cursor = told.Cursor; told.Done {
			return masked, nil
		}
	}
}

// scan is one call of Scan.
type scan struct {
	archive *Archive
	id      wire.Identity
	mask    bool
	ends    time.Time
	told    wire.Scanned

	found []string // records to mask
	bytes int      // of their bodies
}

func (s *scan) run(ctx context.Context) error {
	after, inOrphans := strings.CutPrefix(s.told.Cursor, orphanCursor)
	if !inOrphans {
		more, err := s.listed(ctx)
		if more || err != nil {
			return err
		}
		after = ""
	}
	return s.orphans(ctx, after)
}

// listed looks at the records that lists show. more reports whether time ran out.
func (s *scan) listed(ctx context.Context) (more bool, err error) {
	q, err := query.Compile(wire.Search{Cursor: s.told.Cursor, PerPage: exportPage})
	if err != nil {
		return false, err
	}
	for {
		page, _, err := s.archive.positions(ctx, s.id, q, exportPage)
		if err != nil {
			return false, err
		}
		for _, p := range page {
			if err := s.look(ctx, p.RequestID); err != nil {
				return false, err
			}
			s.told.Cursor = p.Cursor()
			if s.archive.config.Now().After(s.ends) {
				return true, nil
			}
		}
		if len(page) < exportPage {
			return false, nil
		}
		q.After = &page[len(page)-1]
	}
}

// orphans looks at the records whose request has not come.
func (s *scan) orphans(ctx context.Context, after string) error {
	for {
		rows, more, _, err := s.archive.config.Store.Orphans(ctx, s.id.Account, after, exportStep)
		if err != nil {
			return err
		}
		for i := range rows {
			after = rows[i].RequestID
			if err := s.look(ctx, after); err != nil {
				return err
			}
			s.told.Cursor = orphanCursor + after
			if s.archive.config.Now().After(s.ends) {
				return nil
			}
		}
		if !more {
			s.told.Cursor, s.told.Done = "", true
			return nil
		}
	}
}

// look counts and lists the secrets of a record.
func (s *scan) look(ctx context.Context, requestID string) error {
	state, bodies, err := s.archive.config.Store.Bodies(ctx, s.id.Account, requestID)
	if wire.IsCode(err, wire.CodeNotFound) {
		return nil // deleted since
	}
	if err != nil {
		return err
	}

	s.told.Seen++
	n := 0
	for _, h := range state.History {
		n += s.tell(requestID, h.ID, bodies[h.ID])
	}

	// What the events did whose bodies are not kept. The request's own is derived from a body.
	left, err := json.Marshal(State{Scores: state.Scores, Metadata: state.Metadata, Prompt: state.Prompt, GroupIDs: state.GroupIDs})
	if err != nil {
		return err
	}
	if n += s.tell(requestID, "", left); n == 0 {
		return nil
	}

	s.told.Found++
	if !s.mask {
		return nil
	}
	s.found = append(s.found, requestID)
	if s.bytes += state.Bytes(); len(s.found) < maskStep && s.bytes < maskBytesStep {
		return nil
	}
	return s.flush(ctx)
}

// tell counts and lists the secrets of a body, if there is one.
func (s *scan) tell(requestID, eventID string, body []byte) (n int) {
	object, err := wire.ParseObject(body)
	if err != nil {
		return 0
	}
	if n = secrets.Count(body, object, s.told.Kinds); n == 0 {
		return 0
	}
	room := min(wire.ScanEventItems, wire.ScanItemsMax-len(s.told.Items))
	if room <= 0 {
		return n
	}
	for _, finding := range secrets.Find(body, object, room) {
		s.told.Items = append(s.told.Items, wire.FoundSecret{RequestID: requestID, EventID: eventID, SecretFinding: finding})
	}
	return n
}

// flush masks what was found.
func (s *scan) flush(ctx context.Context) error {
	if len(s.found) == 0 {
		return nil
	}
	n, err := s.archive.config.Store.Edit(ctx, s.id.Account, s.found, maskRecord)
	s.told.Masked += n
	s.found, s.bytes = s.found[:0], 0
	return err
}

// note puts what was masked into the audit log, also when the call fails later.
func (s *scan) note(ctx context.Context) error {
	log := s.archive.config.Audit
	if s.told.Masked == 0 || log == nil {
		return nil
	}
	actor, records := "this server", "records"
	if s.id.KeyID != "" {
		actor = "key " + s.id.KeyID
	}
	if s.told.Masked == 1 {
		records = "record"
	}
	return log.Audit(ctx, s.id.Account, wire.AuditEntry{
		ID: wire.NewID(), At: s.archive.config.Now().UTC(), Actor: actor,
		Action: "mask secrets", Target: fmt.Sprintf("%d %s", s.told.Masked, records),
	})
}

// maskRecord masks the secrets in the bodies of a record and in what was derived from its events. It is an Edit.
func maskRecord(s *State, bodies map[string]json.RawMessage) (changed bool, err error) {
	defer func() { s.refer(bodies) }()
	for i := range s.History {
		h := &s.History[i]
		masked, found := maskBody(bodies[h.ID])
		if !found {
			continue
		}
		bodies[h.ID] = masked
		h.Bytes, h.Hash = len(masked), HashBody(masked)
		changed = true
	}

	// What is referred to is not what it was.
	s.restore(bodies, func(string, string, string) bool { return true })

	derived, err := json.Marshal(s)
	if err != nil {
		return false, err
	}
	masked, found := maskBody(derived)
	if !found {
		return changed, nil
	}
	*s = State{}
	if err := json.Unmarshal(masked, s); err != nil {
		return false, err
	}
	slices.Sort(s.GroupIDs)
	s.GroupIDs = slices.Compact(s.GroupIDs)
	return true, nil
}

// maskBody masks the secrets of a JSON object. Of anything else it finds none.
func maskBody(body []byte) (masked []byte, found bool) {
	object, err := wire.ParseObject(body)
	if err != nil {
		return body, false
	}
	return secrets.Mask(body, object)
}
