package api

import (
	"cmp"
	"sync"
	"time"

	"promptspool/api/wire"
)

// note adds what a key has done to the account's audit log. A sidecar has none: what it passes on
// is noted by the server.
func (a *API) note(c *exchange, action, target, detail string) {
	wire.NoteAudit(c.context, a.c.Audit, a.c.Logger, c.id.Account, wire.AuditEntry{
		At:     a.c.Clock.Now().UTC(),
		Actor:  wire.KeyActor(c.id.KeyID),
		Action: action,
		Target: target,
		Detail: detail,
	})
}

// continuedMax bounds the keys whose continued exports are remembered.
const continuedMax = 10_000

// continuedExports knows when each key's continued exports were last noted. An export of many parts
// needs no entry for each, but a cursor alone must not keep it out of the log.
type continuedExports struct {
	mu     sync.Mutex
	lately map[string]time.Time // by key id
}

// due reports whether to note a continued export of a key: once in an hour.
func (n *continuedExports) due(key string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	if last, ok := n.lately[key]; ok && now.Sub(last) < time.Hour {
		return false
	}
	// Forgetting only makes entries that need not be.
	if n.lately == nil || len(n.lately) >= continuedMax {
		n.lately = map[string]time.Time{}
	}
	n.lately[key] = now

	return true
}

// noteExport notes an export. Parts that continue one are noted once in an hour.
func (a *API) noteExport(c *exchange, e wire.Export) {
	if e.Cursor != "" && !a.continued.due(c.id.KeyID, a.c.Clock.Now()) {
		return
	}
	detail := wire.AuditFilter(e.FilterGroup.String())
	if e.Cursor != "" {
		detail = "continued, " + detail
	}
	a.note(c, "export requests", cmp.Or(e.Format, wire.FormatEvents), detail)
}
