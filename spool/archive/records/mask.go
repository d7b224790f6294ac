package records

import (
	"context"
	"encoding/json"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
	"promptspool/spool/archive"
)

// Scan looks for secrets in the records of the account, after q.Cursor, for about 2 s
// or q.Limit records. It goes from the newest on, orphans last. With q.Mask it masks them,
// durably and with an entry in the audit log by the time it returns. It reports where
// secrets are, never what they are.
func (svc *Service) Scan(ctx context.Context, id wire.Identity, q wire.ScanQuery) (wire.Scanned, error) {
	if err := checkAccount(id); err != nil {
		return wire.Scanned{}, err
	}

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
	if n = secrets.Count(body, object, s.answer.Kinds); n == 0 {
		return 0
	}
	// Every secret counts, but only so many are listed: the answer stays bounded.
	space := min(wire.ScanEventItems, wire.ScanItemsMax-len(s.answer.Items))
	if space <= 0 {
		return n
	}
	for _, finding := range secrets.Find(body, object, space) {
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
