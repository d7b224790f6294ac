package wire

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
)

// Operator is the actor of changes that were made with a command on the server's machine.
const Operator = "operator"

// Entries are kept for AuditAge. Of an account with more than AuditMost, those go sooner that are
// older than AuditFresh: a key can make a thousand a second, and must not get rid of an entry so.
const (
	AuditAge   = 400 * 24 * time.Hour
	AuditFresh = 30 * 24 * time.Hour
	AuditMost  = 1_000_000
)

// AuditEntry is one change that was made to an account.
type AuditEntry struct {
	ID     string    `json:"id"` // a UUIDv7; newer ones are greater
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`          // an email, a KeyActor, or Operator
	From   string    `json:"from,omitempty"` // an address; "" for a command on the server's machine
	Action string    `json:"action"`         // a verb and its object: "create key", "move label"
	Target string    `json:"target"`
	Detail string    `json:"detail,omitempty"`
}

// fromKey is the key of From in a context.
type fromKey struct{}

// FromKey is the key under which the context of a request has the address that it came from.
var FromKey any = fromKey{}

// From returns the address that a request came from, by its context; "" if there is none.
func From(ctx context.Context) string {
	from, _ := ctx.Value(FromKey).(string)
	return from
}

// AuditLog stores who changed what in an account. Safe for concurrent use.
type AuditLog interface {
	Audit(ctx context.Context, account string, e AuditEntry) error
}

// noteTimeout bounds how long a change waits for its entry in the audit log.
const noteTimeout = 5 * time.Second

// NoteAudit adds a change to an account's audit log, and gives the entry an id. The
// change is made: it is noted even if ctx has ended. An entry that cannot be stored is
// missing, and logged: after an error the caller would make the change again. Without a log
// nothing is noted.
func NoteAudit(ctx context.Context, log AuditLog, logger *slog.Logger, account string, e AuditEntry) {
	if log == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()

	e.ID = NewID()
	if err := log.Audit(ctx, account, e); err != nil {
		logger.Error("the audit log misses an entry", "project", account, "action", e.Action,
			"target", e.Target, "error", err)
	}
}

// KeyActor returns the actor of what a key did, by its id: its name may change hands.
func KeyActor(id string) string { return keyActor + id }

const keyActor = "key "

// ActingKey returns the id of the key that did something; "" if it was not a key. Versions and
// moves of labels have the id alone.
func ActingKey(actor string) string {
	id := strings.TrimPrefix(actor, keyActor)
	if !strings.HasPrefix(id, "key_") || strings.Contains(id, "@") {
		return ""
	}

	return id
}

// auditRunesMax bounds a filter in an entry.
const auditRunesMax = 200

// AuditFilter returns a filter line as an entry has it.
func AuditFilter(line string) string {
	if line == "" {
		return "all"
	}
	if short := Clip(line, auditRunesMax); short != line {
		return short + "…"
	}

	return line
}

// AuditTarget returns what is deleted as an entry has it. It has no value of metadata, which may
// name a person who asked to be forgotten.
func (d Deletion) AuditTarget() string {
	switch {
	case d.Key != "":
		return "all with one value of " + d.Key
	case d.SessionID != "":
		return "a session"
	case d.TraceID != "":
		return "trace " + d.TraceID
	}

	return "request " + d.RequestID
}

// AuditTarget returns what is scored as an entry has it.
func (w ScoreWrite) AuditTarget() string {
	if t := w.Target; t != nil {
		return Deletion{TraceID: t.TraceID, SessionID: t.SessionID}.AuditTarget()
	}

	return Deletion{RequestID: w.RequestID}.AuditTarget()
}

// AuditDetail returns how much was deleted, and whether that is only a part.
func (d Deleted) AuditDetail() string {
	detail := english.Plural(int(d.Records), "record", "") + ", " + english.Plural(int(d.Events), "event", "")
	if !d.Success {
		detail += ", incomplete"
	}

	return detail
}
