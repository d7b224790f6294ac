package registry

import (
	"context"
	"fmt"
	"strings"

	"promptspool/api/wire"
)

// note adds a change to the account's audit log. by is the person who made it, or "" for the
// identity's key.
func (r *Registry) note(ctx context.Context, id wire.Identity, by, action, target, detail string) {
	if by == "" {
		by = wire.KeyActor(id.KeyID)
	}

	wire.NoteAudit(ctx, r.audit, r.log, id.Account, wire.AuditEntry{
		At:     r.now().UTC(),
		Actor:  by,
		Action: action,
		Target: target,
		Detail: detail,
	})
}

// notePublished notes what a publish has changed: a version, what surrounds one, or both.
func (r *Registry) notePublished(
	ctx context.Context, id wire.Identity, by string, p wire.Publish, version int, done applied,
) {
	if done.restored {
		r.note(ctx, id, by, "restore template", p.Name, "")
	}

	if done.version {
		detail := fmt.Sprintf("version %d", version)
		for _, m := range done.moved {
			m.is = 0 // named already
			detail += ", " + m.String()
		}
		if p.CommitMessage != "" {
			detail += ": " + p.CommitMessage
		}
		r.note(ctx, id, by, "save template", p.Name, detail)
		done.moved = nil
	}

	if done.tags {
		r.note(ctx, id, by, "set tags", p.Name, strings.Join(p.Tags, ", "))
	}
	for _, m := range done.moved {
		r.note(ctx, id, by, "move label", p.Name, m.String())
	}
}

// move is a label that was pointed elsewhere.
type move struct {
	label   string
	was, is int // versions; 0 if there was no such label, or there is none any more
}

// String returns the move as the audit log has it.
func (m move) String() string {
	text := m.label
	if m.is > 0 {
		text = fmt.Sprintf("%s to version %d", text, m.is)
	}
	if m.was > 0 {
		text = fmt.Sprintf("%s (was %d)", text, m.was)
	}

	return text
}
