// Package people has the dashboard's pages for the owners of an account: its people, its keys, and what
// all of them did.
package people

import (
	"context"
	"embed"
	"time"

	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// People lets owners manage the people of their account. Package auth documents the errors.
type People interface {
	SignUp() wire.SignUp
	Members(ctx context.Context, by wire.User) ([]wire.User, error)
	Invite(ctx context.Context, by wire.User, role wire.Role) (wire.Secret, wire.Invite, error)
	Invites(ctx context.Context, by wire.User) ([]wire.Invite, error)
	Uninvite(ctx context.Context, by wire.User, id string) error
	SetRole(ctx context.Context, by wire.User, id string, role wire.Role) (wire.User, error)
	RevertRole(ctx context.Context, by wire.User, id string, role wire.Role, still func(wire.User) bool) error
	SetDisabled(ctx context.Context, by wire.User, id string, disabled bool) (wire.User, error)
	RevertDisabled(ctx context.Context, by wire.User, id string, still func(wire.User) bool) error
	MakeReset(ctx context.Context, by wire.User, id string) (wire.Secret, wire.User, error)
	AuditLog(ctx context.Context, by wire.User, before string, limit int) ([]wire.AuditEntry, error)
}

// Keys makes, rotates and revokes the API keys of all accounts. People see only their account's
// keys.
type Keys interface {
	CreateKey(ctx context.Context, n wire.NewKey) (wire.Secret, wire.Key, error)
	RotateKey(ctx context.Context, id string, overlap time.Duration) (
		secret wire.Secret, made, old wire.Key, err error)
	RevokeKey(ctx context.Context, id string) (wire.Key, error)
}

// pages are the pages for the owners of an account.
type pages struct {
	people People
	keys   Keys
}

//go:embed *.html
var html embed.FS

// Pages returns the pages for the owners of an account.
func Pages(people People, keys Keys) frame.Section {
	p := &pages{people, keys}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /people", Page: p.peoplePage},
			{Pattern: "POST /invites", Page: p.invite},
			{Pattern: "POST /invites/{id}/delete", Page: p.uninvite},
			{Pattern: "POST /people/{id}/role", Page: p.setRole},
			{Pattern: "POST /people/{id}/disabled", Page: p.setDisabled},
			{Pattern: "POST /people/{id}/reset", Page: p.makeReset},

			{Pattern: "GET /keys", Page: p.keysPage},
			{Pattern: "POST /keys", Page: p.createKey},
			{Pattern: "POST /keys/{id}/rotate", Page: p.rotateKey},
			{Pattern: "POST /keys/{id}/revoke", Page: p.revokeKey},
			{Pattern: "GET /audit", Page: p.auditPage},
			{Pattern: "GET /audit/export", Page: p.exportAudit},
		},
		Notices: map[string]string{
			"revoked":   "The key is revoked. Calls with it are now rejected.",
			"uninvited": "The invite is revoked. Its link no longer works.",
		},
		Undos: map[string]frame.Undoing{
			"role":     {Text: roleText, Back: p.undoRole},
			"disabled": {Text: disabledText, Back: p.undoDisabled},
			"enabled":  {Text: func(u frame.Undo) string { return u.Name + " can sign in again." }},
		},
	}
}
